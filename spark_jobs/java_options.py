"""Java's options for the processes that run Spark."""

# Options of Java for drivers that run for hours, and for those that end after minutes. The code
# cache holds the plans of two dozen views.
_SMALL_HEAP = "-XX:ReservedCodeCacheSize=256m -XX:+UseSerialGC"
LONG_RUN = (
    "-XX:Tier4InvocationThreshold=50000 -XX:Tier4MinInvocationThreshold=6000 "
    f"-XX:Tier4CompileThreshold=150000 -XX:Tier4BackEdgeThreshold=400000 {_SMALL_HEAP}"
)
SHORT_RUN = f"-XX:TieredStopAtLevel=1 {_SMALL_HEAP}"
