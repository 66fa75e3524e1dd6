-- The keyword leg. A word is known by a number, so that a text is a sparse vector of words and BM25 an inner product:
-- the text's side of the formula is stored, the question's side (idf) comes with the question.

-- Numbers from 1 to 1,000,000,000, the dimension pgvector allows. PostgreSQL keeps this hash stable, because
-- hash-partitioned tables rest on it.
CREATE OR REPLACE FUNCTION retrieval_term(word text) RETURNS integer
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE AS $$
    SELECT ((hashtextextended(word, 0) & 1152921504606846975) % 1000000000 + 1)::integer
$$;

-- Words by how often they occur: lexemes of the words, and pairs of characters as they are.
CREATE OR REPLACE FUNCTION retrieval_terms(configuration regconfig, spaced text, pairs text)
RETURNS TABLE (term integer, times integer)
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT found.term, sum(found.times)::integer FROM (
        SELECT retrieval_term(lexeme) AS term, cardinality(positions) AS times
        FROM unnest(to_tsvector(configuration, spaced))
        UNION ALL
        SELECT retrieval_term(pair), 1 FROM unnest(string_to_array(pairs, ' ')) AS pair
    ) AS found GROUP BY found.term
$$;

-- BM25's side of the text, k1 = 1.2 and b = 0.75: how much each of its words says about it.
CREATE OR REPLACE FUNCTION retrieval_weights(terms integer[], times integer[], length integer, average double precision)
RETURNS sparsevec
LANGUAGE sql STABLE PARALLEL SAFE AS $$
    SELECT ('{' || coalesce(string_agg(
        found.term || ':' || (found.times * 2.2 / (found.times + 1.2 * (0.25 + 0.75 * length / average)))::real,
        ',' ORDER BY found.term), '') || '}/1000000000')::sparsevec
    FROM unnest(terms, times) AS found(term, times)
$$;

-- Writing: how many chunks of a collection hold a word is kept by appended differences, so that two documents that are
-- taken in at the same time never wait for one another; `retrieval_words_fold` joins them now and then.
-- Terms from 0 down are totals: 0 counts the chunks, -1 adds their lengths, and the negative number of a
-- configuration's name counts the chunks that were read with it.
CREATE OR REPLACE FUNCTION retrieval_words_counted() RETURNS trigger
LANGUAGE plpgsql AS $$
DECLARE
    sign integer := CASE TG_OP WHEN 'DELETE' THEN -1 ELSE 1 END;
BEGIN
    INSERT INTO retrieval_worddelta (collection_id, term, difference)
    SELECT collection_id, term, sign * count(*)
    FROM changed, unnest(changed.terms) AS term GROUP BY collection_id, term
    UNION ALL
    SELECT collection_id, -retrieval_term(configuration), sign * count(*)
    FROM changed GROUP BY collection_id, configuration
    UNION ALL
    SELECT collection_id, 0, sign * count(*) FROM changed GROUP BY collection_id
    UNION ALL
    SELECT collection_id, -1, sign * sum(length) FROM changed GROUP BY collection_id;
    RETURN NULL;
END
$$;

-- Whatever removes a chunk, by whichever way, removes its words with it.
CREATE OR REPLACE FUNCTION retrieval_words_removed() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
    DELETE FROM retrieval_chunkwords WHERE chunk_id IN (SELECT id FROM gone);
    RETURN NULL;
END
$$;

DROP TRIGGER IF EXISTS words_added ON retrieval_chunkwords;
CREATE TRIGGER words_added AFTER INSERT ON retrieval_chunkwords
    REFERENCING NEW TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION retrieval_words_counted();
DROP TRIGGER IF EXISTS words_taken ON retrieval_chunkwords;
CREATE TRIGGER words_taken AFTER DELETE ON retrieval_chunkwords
    REFERENCING OLD TABLE AS changed FOR EACH STATEMENT EXECUTE FUNCTION retrieval_words_counted();
DROP TRIGGER IF EXISTS words_removed ON retrieval_chunk;
CREATE TRIGGER words_removed AFTER DELETE ON retrieval_chunk
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION retrieval_words_removed();

-- Join the differences to the counts. One at a time; whoever comes meanwhile has nothing to do. Returns rows joined.
CREATE OR REPLACE FUNCTION retrieval_words_fold() RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    joined bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('retrieval.words', 0)) THEN
        RETURN 0;
    END IF;
    WITH taken AS (
        DELETE FROM retrieval_worddelta RETURNING collection_id, term, difference
    ), summed AS (
        SELECT collection_id, term, sum(difference) AS difference, count(*) AS n FROM taken GROUP BY 1, 2
    ), kept AS (
        INSERT INTO retrieval_wordcount (collection_id, term, chunks)
        SELECT collection_id, term, difference FROM summed
        ON CONFLICT (term, collection_id) DO UPDATE SET chunks = retrieval_wordcount.chunks + excluded.chunks
    ) SELECT coalesce(sum(n), 0) INTO joined FROM summed;
    DELETE FROM retrieval_wordcount WHERE chunks = 0;
    RETURN joined;
END
$$;

-- Vectors of words stay in the row's page, as those of meaning do.
ALTER TABLE retrieval_chunkwords ALTER COLUMN weights SET STORAGE MAIN;
ALTER TABLE retrieval_chunkwords ALTER COLUMN terms SET STORAGE MAIN;
