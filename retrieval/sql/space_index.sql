-- The approximate index of one embedding space, partial and cast to the space's dimension because
-- the column itself has none. SECURITY DEFINER: the application's role may not create indexes, and this
-- is the only one it may ask for. Returns the index name, or NULL where pgvector has no index for so
-- many dimensions (search then scans exactly). It holds the vectors marked as `indexed` only.
CREATE OR REPLACE FUNCTION retrieval_space_index(space uuid, dimension integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    index_name text := 'retrieval_vector_hnsw_' || replace(space::text, '-', '');
BEGIN
    IF dimension NOT BETWEEN 1 AND 4000 THEN
        RETURN NULL;
    END IF;
    EXECUTE format(
        'CREATE INDEX IF NOT EXISTS %I ON retrieval_chunkvector '
        'USING hnsw ((embedding::halfvec(%s)) halfvec_ip_ops) WHERE space_id = %L AND indexed',
        index_name, dimension, space);
    RETURN index_name;
END
$$;

-- A space that is given up: its vectors and its index go. Never the one that is searched.
CREATE OR REPLACE FUNCTION retrieval_space_drop(space uuid) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    removed bigint;
BEGIN
    IF EXISTS (SELECT FROM retrieval_embeddingspace s WHERE s.id = space AND s.state = 'active') THEN
        RAISE EXCEPTION 'this space is searched now';
    END IF;
    EXECUTE format('DROP INDEX IF EXISTS %I', 'retrieval_vector_hnsw_' || replace(space::text, '-', ''));
    DELETE FROM retrieval_chunkvector v WHERE v.space_id = space;
    GET DIAGNOSTICS removed = ROW_COUNT;
    RETURN removed;
END
$$;

-- Enter up to so many vectors that were stored lately into the approximate index of their space. One at a time; whoever
-- comes meanwhile has nothing to do. Rows that somebody removes now are left to them. Returns how many were entered.
CREATE OR REPLACE FUNCTION retrieval_vectors_fold(most integer) RETURNS bigint
LANGUAGE plpgsql AS $$
DECLARE
    entered bigint;
BEGIN
    IF NOT pg_try_advisory_xact_lock(hashtextextended('retrieval.vectors', 0)) THEN
        RETURN 0;
    END IF;
    WITH fresh AS (
        SELECT chunk_id, space_id FROM retrieval_chunkvector WHERE NOT indexed
        LIMIT most FOR UPDATE SKIP LOCKED
    )
    UPDATE retrieval_chunkvector v SET indexed = true FROM fresh
    WHERE v.chunk_id = fresh.chunk_id AND v.space_id = fresh.space_id;
    GET DIAGNOSTICS entered = ROW_COUNT;
    RETURN entered;
END
$$;
