"""Work beside requests: the broker, its queues, and what runs by the clock, under Celery's own names."""

from app.settings import env

REDIS_URL = env.text("REDIS_URL", "redis://127.0.0.1:6379/0")
CELERY_BROKER_URL = REDIS_URL
CELERY_TASK_DEFAULT_QUEUE = "default"
INGEST_QUEUE, INGEST_QUEUE_SMALL = "ingest", "ingest.small"
INGEST_SMALL_BYTES = env.number("INGEST_SMALL_BYTES", 1_000_000)
INGEST_LEASE_SECONDS = env.number("INGEST_LEASE_SECONDS", 60)
# Two lanes: a small file never waits behind a long one. Everything periodic runs in the default queue.
CELERY_TASK_ROUTES = {
    "retrieval.tasks.document_ingest": {"queue": INGEST_QUEUE},
    "retrieval.tasks.spaces_advance": {"queue": INGEST_QUEUE},
}
QUEUES = (CELERY_TASK_DEFAULT_QUEUE, INGEST_QUEUE, INGEST_QUEUE_SMALL)
CELERY_TASK_IGNORE_RESULT = True
CELERY_WORKER_PREFETCH_MULTIPLIER = 1
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_TRANSPORT_OPTIONS = {
    "visibility_timeout": 3600,
    "socket_timeout": 15,
    "socket_connect_timeout": 3,
}
CELERY_BEAT_SCHEDULE = {
    "turns-sweep": {"task": "app.chat.tasks.turns_sweep", "schedule": 10.0},
    "reservations-sweep": {"task": "app.billing.tasks.reservations_sweep", "schedule": 30.0},
    "credits-lapse": {"task": "app.billing.tasks.credits_lapse", "schedule": 60.0},
    "alerts-run": {"task": "app.billing.tasks.alerts_run", "schedule": 30.0},
    "rollups-fold": {"task": "app.billing.tasks.rollups_fold", "schedule": 30.0, "options": {"expires": 30}},
    "provisioned-book": {"task": "app.billing.tasks.provisioned_book", "schedule": 600.0},
    "documents-requeue": {
        "task": "retrieval.tasks.documents_requeue_expired",
        "schedule": min(20.0, INGEST_LEASE_SECONDS / 2),
    },
    "originals-sweep": {"task": "retrieval.tasks.originals_sweep", "schedule": 6 * 3600.0},
    "erasures-repeat": {"task": "app.chat.tasks.erasures_repeat", "schedule": 300.0},
    "spaces-advance": {
        "task": "retrieval.tasks.spaces_advance",
        "schedule": 30.0,
        "options": {"expires": 30},
    },
    "statements-issue": {"task": "app.billing.tasks.statements_issue", "schedule": 3600.0},
    # One that lies longer than this behind others is not worth sending: the next is on its way.
    "outbox-send": {
        "task": "app.billing.tasks.outbox_send",
        "schedule": 5.0,
        "options": {"expires": 60},
    },
    "jobs-tell": {"task": "app.api.tasks.jobs_tell", "schedule": 5.0, "options": {"expires": 60}},
    "loads-scrape": {"task": "app.catalog.tasks.loads_scrape", "schedule": 15.0, "options": {"expires": 10}},
    "counts-learn": {"task": "app.gate.tasks.counts_learn", "schedule": 30.0},
    "vectors-fold": {"task": "retrieval.tasks.vectors_fold", "schedule": 10.0, "options": {"expires": 10}},
    "words-fold": {"task": "retrieval.tasks.words_fold", "schedule": 60.0, "options": {"expires": 60}},
    "retention-run": {"task": "app.chat.tasks.retention_run", "schedule": 900.0, "options": {"expires": 900}},
    "timings-prune": {"task": "app.chat.tasks.timings_prune", "schedule": 3600.0},
    "exports-sweep": {"task": "app.ops.tasks.exports_sweep", "schedule": 300.0},
    "jobs-prune": {"task": "app.api.tasks.jobs_prune", "schedule": 3600.0},
    "idempotency-prune": {"task": "app.api.tasks.idempotency_prune", "schedule": 3600.0},
}
CELERY_BEAT_SCHEDULE_FILENAME = str(env.DATA_DIR / "celerybeat-schedule")
