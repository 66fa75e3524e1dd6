-- The approximate index of one embedding space, partial and cast to the space's dimension because
-- the column itself has none. SECURITY DEFINER: the application's role may not create indexes, and this
-- is the only one it may ask for. Returns the index name, or NULL where pgvector has no index for so
-- many dimensions (search then scans exactly).
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
        'USING hnsw ((embedding::halfvec(%s)) halfvec_ip_ops) WHERE space_id = %L',
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
