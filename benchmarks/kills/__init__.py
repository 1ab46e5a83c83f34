"""Transactions by the thousand while the worker and the streams are killed: is silver right?"""
