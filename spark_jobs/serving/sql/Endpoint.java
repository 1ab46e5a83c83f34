package tidemark;

import java.util.HashMap;
import java.util.Map;
import java.util.Properties;
import java.util.function.BiPredicate;
import java.util.function.Consumer;
import javax.security.sasl.AuthenticationException;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.ql.security.authorization.DefaultHiveAuthorizationProvider;
import org.apache.hive.service.auth.PasswdAuthenticationProvider;
import org.apache.hive.service.cli.HiveSQLException;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.TableIdentifier;
import org.apache.spark.sql.catalyst.analysis.PlanWithUnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedNamespace;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableOrView;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.parser.ParameterContext;
import org.apache.spark.sql.catalyst.parser.ParseException;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.hive.thriftserver.HiveThriftServer2$;
import org.apache.spark.sql.internal.SQLConf;
import org.apache.spark.sql.types.DataType;
import org.apache.spark.sql.types.StructType;
import org.apache.spark.unsafe.Platform;
import scala.Function2;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;

/**
 * Spark's Thrift server behind two questions: may this user come in, and what runs for a statement.
 * Both are answered elsewhere.
 */
public final class Endpoint {

  /**
   * Starts the server.
   *
   * @param session clients get sessions over its catalog
   * @param check says whether a user with a password may come in
   * @param judge gets what is known of a statement, as a map, and puts "sql" and "policy" or
   *     "refusal" into it
   * @param keyStore the file with the server's key and certificate, or null to serve without TLS
   * @param password what the file is encrypted with
   */
  public void open(
      SparkSession session,
      BiPredicate check,
      Consumer judge,
      String keyStore,
      String password) {
    Password.check = check;
    if (keyStore != null) {
      System.setProperty("hive.server2.use.SSL", "true");
      System.setProperty("hive.server2.keystore.path", keyStore);
      System.setProperty("hive.server2.keystore.password", password);
    }
    System.setProperty(
        "hive.server2.custom.authentication.class", Password.class.getName());
    System.setProperties(new SealedProperties(System.getProperties()));
    ((org.apache.spark.sql.classic.SparkSession) session)
        .extensions()
        .injectParser(new Gate(judge, session));
    HiveConf conf = HiveThriftServer2$.MODULE$.startWithSparkSession(session, false).getHiveConf();
    // When a client leaves, Hive looks for its metastore, and would make one. There is none.
    conf.setVar(HiveConf.ConfVars.METASTOREURIS, "thrift://none");
    conf.setIntVar(HiveConf.ConfVars.METASTORETHRIFTCONNECTIONRETRIES, 0);
    System.clearProperty("hive.server2.keystore.password");
    conf.unset("hive.server2.keystore.password");
  }

  /** Asks whether a user may come in. The server makes one of these, by its name, for a login. */
  public static class Password implements PasswdAuthenticationProvider {
    static volatile BiPredicate check;
    /** Who logged in on this thread: a connection has one, which also opens its session. */
    static final ThreadLocal user = new ThreadLocal();

    public void Authenticate(String user, String password) throws AuthenticationException {
      Password.user.remove();
      if (user == null || password == null || !check.test(user, password)) {
        throw new AuthenticationException("the user or the password is wrong");
      }
      Password.user.set(user);
    }
  }

  /** Is asked before names are listed, and refuses none: what is listed is for all to see. */
  public static class Listed extends DefaultHiveAuthorizationProvider {

    /** The class above looks for a metastore here. */
    public void init(Configuration conf) {}
  }

  /** Gives each new session a parser that asks the judge. */
  public static class Gate implements Function2 {
    private final Consumer judge;
    private final Map settings;

    /** What no client has changed are the settings of the session that all others come from. */
    public Gate(Consumer judge, SparkSession session) {
      this.judge = judge;
      this.settings = settings(session);
    }

    public Object apply(Object session, Object parser) {
      // A session gets its parser when it is opened, by the thread of its connection.
      String user = (String) Password.user.get();
      return new Judged((SparkSession) session, (ParserInterface) parser, judge, settings, user);
    }

    static Map settings(SparkSession session) {
      SQLConf conf = ((org.apache.spark.sql.classic.SparkSession) session).sessionState().conf();
      return new HashMap(conf.settings());
    }
  }

  /** Parses what the judge makes of a statement; all else that Spark parses passes as it is. */
  public static class Judged implements ParserInterface {
    private static final String INSUFFICIENT_PRIVILEGE = "42501";
    private final SparkSession session;
    private final ParserInterface parser;
    private final Consumer judge;
    private final Map settings;
    private final String user;

    Judged(
        SparkSession session,
        ParserInterface parser,
        Consumer judge,
        Map settings,
        String user) {
      this.session = session;
      this.parser = parser;
      this.judge = judge;
      this.settings = settings;
      this.user = user;
    }

    public LogicalPlan parsePlan(String text) throws ParseException {
      return again(parser.parsePlan(judged(text, parser.parsePlan(text))));
    }

    public LogicalPlan parsePlanWithParameters(String text, ParameterContext parameters)
        throws ParseException {
      LogicalPlan plan = parser.parsePlanWithParameters(text, parameters);
      return again(parser.parsePlanWithParameters(judged(text, plan), parameters));
    }

    /** What reads tables must be no command, whatever it was before it was judged. */
    private static LogicalPlan again(LogicalPlan plan) {
      boolean explains = plan instanceof ExplainCommand;
      if (Guard.holds() && !explains && (plan instanceof Command || plan instanceof ParsedStatement)) {
        refuse("the statement is no SELECT");
      }
      return plan;
    }

    private static void refuse(String refusal) {
      Platform.throwException(new HiveSQLException(refusal, INSUFFICIENT_PRIVILEGE));
    }

    private String judged(String text, LogicalPlan plan) {
      Map statement = new HashMap();
      statement.put("kind", plan.getClass().getSimpleName());
      statement.put("text", text);
      statement.put("user", user == null ? "" : user);
      statement.put("schema", session.catalog().currentDatabase());
      statement.put("changed", changed());
      statement.put("tables", "");
      statement.put("schemas", "");
      Iterator leaves = plan.collectLeaves().iterator();
      while (leaves.hasNext()) {
        Object leaf = leaves.next();
        if (leaf instanceof UnresolvedTableOrView) {
          add(statement, "tables", ((UnresolvedTableOrView) leaf).multipartIdentifier());
        } else if (leaf instanceof UnresolvedNamespace) {
          add(statement, "schemas", ((UnresolvedNamespace) leaf).multipartIdentifier());
        } else if (leaf instanceof PlanWithUnresolvedIdentifier) {
          // Nobody knows yet what it shows.
          statement.put("kind", leaf.getClass().getSimpleName());
        }
      }
      judge.accept(statement);
      if (statement.get("sql") == null) {
        refuse(String.valueOf(statement.get("refusal")));
      }
      // What this thread analyses next is this statement.
      Guard.hold((String) statement.get("policy"));
      return (String) statement.get("sql");
    }

    private static void add(Map statement, String key, Seq name) {
      statement.put(key, statement.get(key) + name.mkString(".") + "\n");
    }

    /** The settings that a client gave the session, by SET or when it connected; one a line. */
    private String changed() {
      StringBuilder keys = new StringBuilder();
      Map now = Gate.settings(session);
      for (Object key : now.keySet()) {
        if (!now.get(key).equals(settings.get(key))) {
          keys.append(key).append('\n');
        }
      }
      return keys.toString();
    }

    public LogicalPlan parseQuery(String text) throws ParseException {
      return parser.parseQuery(text);
    }

    public Expression parseExpression(String text) throws ParseException {
      return parser.parseExpression(text);
    }

    public TableIdentifier parseTableIdentifier(String text) throws ParseException {
      return parser.parseTableIdentifier(text);
    }

    public FunctionIdentifier parseFunctionIdentifier(String text) throws ParseException {
      return parser.parseFunctionIdentifier(text);
    }

    public Seq parseMultipartIdentifier(String text) throws ParseException {
      return parser.parseMultipartIdentifier(text);
    }

    public StructType parseRoutineParam(String text) throws ParseException {
      return parser.parseRoutineParam(text);
    }

    public StructType parseTableSchema(String text) throws ParseException {
      return parser.parseTableSchema(text);
    }

    public DataType parseDataType(String text) throws ParseException {
      return parser.parseDataType(text);
    }
  }

  /**
   * The properties of this process, which clients must not set.
   *
   * <p>Hive's protocol lets a client that connects set each of them, by "set:system:...".
   */
  public static class SealedProperties extends Properties {
    private static final String CLIENTS = "HiveServer2-Handler-Pool";

    public SealedProperties(Properties properties) {
      putAll(properties);
    }

    public synchronized Object setProperty(String key, String value) {
      if (Thread.currentThread().getName().startsWith(CLIENTS)) {
        throw new IllegalArgumentException("a client may not set the system property " + key);
      }
      return super.setProperty(key, value);
    }
  }
}
