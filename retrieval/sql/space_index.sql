-- The approximate index of one embedding space, partial and cast to the space's dimension because
-- the column itself has none. SECURITY DEFINER: the application's role may not create indexes, and this
-- is the only one it may ask for. Returns the index name, or NULL where pgvector has no index for so
-- many dimensions (search then scans exactly).
CREATE OR REPLACE FUNCTION retrieval_space_index(space uuid, dimension integer) RETURNS text
LANGUAGE plpgsql SECURITY DEFINER SET search_path FROM CURRENT AS $$
DECLARE
    index_name text := 'retrieval_chunk_hnsw_' || replace(space::text, '-', '');
BEGIN
    IF dimension NOT BETWEEN 1 AND 4000 THEN
        RETURN NULL;
    END IF;
    EXECUTE format(
        'CREATE INDEX IF NOT EXISTS %I ON retrieval_chunk '
        'USING hnsw ((embedding::halfvec(%s)) halfvec_ip_ops) WHERE space_id = %L',
        index_name, dimension, space);
    RETURN index_name;
END
$$;

-- Vectors stay in the row's page: a scan that ranks rows exactly must not fetch each vector from a side table.
ALTER TABLE retrieval_chunk ALTER COLUMN embedding SET STORAGE MAIN;
