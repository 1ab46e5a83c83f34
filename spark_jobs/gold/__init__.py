"""Refreshing gold views: plan, stage, audit, publish, record; and verifying them.

A published table always equals its SQL at the version vector that its newest publication records.
All Spark code here is DataFrame and SQL only, so that it runs over Spark Connect.
"""
