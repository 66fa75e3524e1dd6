DROP TRIGGER words_removed ON retrieval_chunk;
DROP FUNCTION retrieval_words_counted() CASCADE;
DROP FUNCTION retrieval_words_removed() CASCADE;
DROP FUNCTION retrieval_words_fold(), retrieval_weights(integer[], integer[], integer, double precision),
    retrieval_terms(regconfig, text, text), retrieval_term(text);
