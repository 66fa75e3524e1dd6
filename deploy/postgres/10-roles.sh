#!/bin/sh
# Run once by the PostgreSQL image, as its superuser, when the data volume is empty.
#   tessera_owner  owns the database and migrates it
#   tessera_app    reads and writes rows; no DDL, no TRUNCATE (migrations take UPDATE and DELETE on the ledger away)
# Passwords arrive in the environment and are handed to psql as variables, so they are quoted as literals.
set -eu
: "${DATABASE_OWNER_PASSWORD:?is not set; see .env.example}" "${DATABASE_APP_PASSWORD:?is not set; see .env.example}"

# On standard input, not -c: psql replaces variables only there.
psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname postgres \
    --set owner_password="$DATABASE_OWNER_PASSWORD" --set app_password="$DATABASE_APP_PASSWORD" <<'SQL'
CREATE ROLE tessera_owner LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'owner_password';
CREATE ROLE tessera_app   LOGIN NOSUPERUSER NOCREATEDB NOCREATEROLE PASSWORD :'app_password';
CREATE DATABASE tessera OWNER tessera_owner ENCODING 'UTF8' LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8' TEMPLATE template0;
REVOKE CONNECT, TEMPORARY ON DATABASE tessera FROM PUBLIC;
GRANT CONNECT ON DATABASE tessera TO tessera_app;
SQL

psql --quiet --no-psqlrc --set ON_ERROR_STOP=1 --username "$POSTGRES_USER" --dbname tessera <<'SQL'
-- Extensions need the superuser where they are not marked trusted, so all of them are made here.
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS unaccent;
CREATE EXTENSION IF NOT EXISTS btree_gist;
CREATE EXTENSION IF NOT EXISTS btree_gin;
ALTER SCHEMA public OWNER TO tessera_owner;
REVOKE CREATE ON SCHEMA public FROM PUBLIC;
GRANT USAGE ON SCHEMA public TO tessera_app;
ALTER DEFAULT PRIVILEGES FOR ROLE tessera_owner IN SCHEMA public
    GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO tessera_app;
ALTER DEFAULT PRIVILEGES FOR ROLE tessera_owner IN SCHEMA public
    GRANT USAGE, SELECT ON SEQUENCES TO tessera_app;
ALTER DEFAULT PRIVILEGES FOR ROLE tessera_owner IN SCHEMA public
    GRANT EXECUTE ON FUNCTIONS TO tessera_app;
SQL
