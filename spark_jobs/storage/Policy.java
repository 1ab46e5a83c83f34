package tidemark;

import java.net.URLDecoder;
import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.SparkSession;
import scala.collection.immutable.Seq;

/**
 * What a query may read and call.
 *
 * <p>A policy is lines of fields, each field encoded as in a URL and fields separated by a space;
 * "-" stands for none:
 *
 * <pre>
 * delta PATH VERSION COLUMN...   a table at a version, * for each; columns that are masked
 * view NAME                      a view of the session
 * functions NAME...              what may be called
 * tables NAME...                 functions that may stand for a table
 * </pre>
 */
final class Policy {
  /** The setting of a session with its policy. */
  static final String KEY = "spark.tidemark.reads";
  /** The policy of a thread. */
  static final ThreadLocal HELD = new ThreadLocal();

  private final Map versions = new HashMap();
  private final Map columns = new HashMap();
  private final Set views = new HashSet();
  private final Set functions = new HashSet();
  private final Set tables = new HashSet();

  /** What holds for what this thread analyses, or null. */
  static Policy of(SparkSession session) {
    String text = (String) HELD.get();
    if (text == null) {
      org.apache.spark.sql.classic.SparkSession classic =
          (org.apache.spark.sql.classic.SparkSession) session;
      text = classic.sessionState().conf().getConfString(KEY, "");
    }
    return text.isEmpty() || ofDelta() ? null : new Policy(text);
  }

  /** Whether Delta asks: it reads its log with queries of its own, in the same session. */
  static boolean ofDelta() {
    StackTraceElement[] calls = new Throwable().getStackTrace();
    for (int i = 0; i < calls.length; i++) {
      if (calls[i].getClassName().startsWith("org.apache.spark.sql.delta.")) {
        return true;
      }
    }
    return false;
  }

  Policy(String text) {
    String[] lines = text.split("\n");
    for (int i = 0; i < lines.length; i++) {
      String[] fields = lines[i].split(" ");
      for (int j = 0; j < fields.length; j++) {
        fields[j] = URLDecoder.decode(fields[j], java.nio.charset.StandardCharsets.UTF_8);
      }
      Set rest = new HashSet(Arrays.asList(fields));
      if (fields[0].equals("delta")) {
        String[] masked = (String[]) Arrays.copyOfRange(fields, 3, fields.length);
        versions.put(place(new Path(fields[1])), fields[2]);
        columns.put(place(new Path(fields[1])), new HashSet(Arrays.asList(masked)));
      } else if (fields[0].equals("view")) {
        views.add(fields[1]);
      } else if (fields[0].equals("functions")) {
        functions.addAll(rest);
      } else if (fields[0].equals("tables")) {
        tables.addAll(rest);
      }
    }
  }

  void named(Seq name) {
    boolean path = name.size() == 2 && "delta".equalsIgnoreCase((String) name.apply(0));
    if (path ? !versions.containsKey(place(new Path((String) name.apply(1))))
        : !views.contains(name.mkString("."))) {
      refuse("it reads " + name.mkString(".") + ", which is no table of the project");
    }
  }

  void called(String name) {
    if (!functions.contains(name.toLowerCase(Locale.ROOT))) {
      refuse(name + " may not be called");
    }
  }

  void table(String function) {
    if (!tables.contains(function.toLowerCase(Locale.ROOT))) {
      refuse(function + " may not stand for a table");
    }
  }

  /** The masked columns of a table at a version, in lower case; null where it may not be read. */
  Set masked(Path path, long version) {
    Object allowed = versions.get(place(path));
    boolean right = "*".equals(allowed) || Long.toString(version).equals(allowed);
    return right ? (Set) columns.get(place(path)) : null;
  }

  /** A path by which two spellings of one local file are equal. */
  private static String place(Path path) {
    String scheme = path.toUri().getScheme();
    boolean local = scheme == null || scheme.equals("file");
    return local ? path.toUri().getPath() : path.toString();
  }

  /** Ends a query that asks for more. */
  static void refuse(String problem) {
    throw new SecurityException("[QUERY_NOT_READ_ONLY] " + problem);
  }
}
