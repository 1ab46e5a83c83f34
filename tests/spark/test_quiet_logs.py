"""What the configuration of the logs silences is there to be silenced."""

from __future__ import annotations

import logging
import re
from typing import TYPE_CHECKING, Any

import pytest

from spark_jobs.storage.conf import LOG_CONFIGURATION

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LOGGERS = re.findall(r"^logger\.\w+\.name = (.+)$", LOG_CONFIGURATION.read_text(), re.MULTILINE)


@pytest.mark.parametrize("name", LOGGERS)
def test_a_quiet_logger_is_a_class_that_logs(spark: SparkSession, name: str) -> None:
    java: Any = spark._jvm
    loader = java.java.lang.Thread.currentThread().getContextClassLoader()
    assert java.java.lang.Class.forName(name, False, loader)
    level = java.org.apache.logging.log4j.LogManager.getLogger(name).getLevel()
    assert level.toString() == logging.getLevelName(logging.ERROR)
