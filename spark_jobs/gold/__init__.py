"""Refreshing gold views: plan, stage, audit, publish, record."""
