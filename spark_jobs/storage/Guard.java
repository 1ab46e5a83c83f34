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
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.ExpressionWithUnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.PlanWithUnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedGenerator;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CallMethodViaReflection;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.DeserializeToObject;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.delta.catalog.DeltaTableV2;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.execution.command.ExplainCommand;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.Tuple3;
import scala.collection.Iterator;
import scala.collection.immutable.Seq;
import scala.runtime.AbstractFunction1;
import scala.runtime.BoxedUnit;

/**
 * Holds what runs for a person to what that person may read, by Spark's own plans.
 *
 * <p>A session extension. It looks into plans while a policy holds: the session's setting {@link
 * #KEY}, or what {@link #hold} was given in this thread. A policy is lines of fields, each field
 * encoded as in a URL and fields separated by a space; "-" stands for none:
 *
 * <pre>
 * delta PATH VERSION COLUMN...   a table at a version, * for each; columns that are masked
 * view NAME                      a view of the session
 * functions NAME...              what may be called
 * tables NAME...                 functions that may stand for a table
 * </pre>
 *
 * <p>Where the setting {@link #ONLY_DELTA} is true, nothing but Delta tables is read, whether or not
 * a policy holds. No statement takes that back from what the process was started with.
 */
public final class Guard extends AbstractFunction1 {
  public static final String KEY = "spark.tidemark.reads";
  public static final String ONLY_DELTA = "spark.tidemark.onlyDelta";
  // The schema of views that all sessions share; the catalog does not count it.
  private static final String TEMPORARY = "global_temp";
  private static final ThreadLocal HELD = new ThreadLocal();
  // They call any Java method, some while a query is analysed.
  private static final String[] NEVER = {"java_method", "reflect", "try_reflect"};
  // Their options may name a file: the numbers of their arguments without options.
  private static final Map FILES_IN_OPTIONS = new HashMap();

  static {
    FILES_IN_OPTIONS.put("from_avro", Integer.valueOf(2));
    FILES_IN_OPTIONS.put("from_xml", Integer.valueOf(2));
    FILES_IN_OPTIONS.put("schema_of_avro", Integer.valueOf(1));
    FILES_IN_OPTIONS.put("schema_of_xml", Integer.valueOf(1));
  }

  private static final Set NODES =
      new HashSet(
          Arrays.asList(
              new String[] {
                "Aggregate", "CTERelationDef", "CTERelationRef", "Deduplicate", "Distinct",
                "Except", "Expand", "Filter", "Generate", "GlobalLimit", "Intersect", "Join",
                "LateralJoin", "LimitAll", "LocalLimit", "LocalRelation", "LogicalRDD", "Offset",
                "OneRowRelation", "PipeOperator", "Pivot", "Project", "Range", "Repartition",
                "RepartitionByExpression", "Sample", "Sort", "SubqueryAlias", "Union",
                "UnionLoop", "UnionLoopRef", "Unpivot", "View", "Window", "WithCTE"
              }));

  // They would run a program, write files, or load code.
  private static final Set WRITES =
      new HashSet(
          Arrays.asList(
              new String[] {
                "ScriptTransformation", "InsertIntoDir", "InsertIntoDataSourceDirCommand",
                "InsertIntoHiveDirCommand", "InsertIntoHadoopFsRelationCommand",
                "SaveIntoDataSourceCommand", "CreateDataSourceTableAsSelectCommand",
                "AddJarsCommand", "AddFilesCommand", "AddArchivesCommand"
              }));

  public Object apply(Object given) {
    SparkSessionExtensions extensions = (SparkSessionExtensions) given;
    extensions.injectHintResolutionRule(new Written(null));
    extensions.injectCheckRule(new Analysed(null));
    for (int i = 0; i < NEVER.length; i++) {
      FunctionIdentifier name = new FunctionIdentifier(NEVER[i]);
      ExpressionInfo info = new ExpressionInfo(Guard.class.getName(), NEVER[i]);
      extensions.injectFunction(new Tuple3(name, info, new Never(NEVER[i])));
    }
    return BoxedUnit.UNIT;
  }

  /** Lets a policy hold for what this thread analyses from now on; an empty one ends it. */
  public static void hold(String policy) {
    HELD.set(policy.isEmpty() ? null : policy);
  }

  /** Whether a policy holds for what this thread analyses. */
  public static boolean holds() {
    return HELD.get() != null;
  }

  private static void refuse(String problem) {
    throw new SecurityException("[QUERY_NOT_READ_ONLY] " + problem);
  }

  /** Builds a function that nobody may call. */
  public static class Never extends AbstractFunction1 {
    private final String name;

    Never(String name) {
      this.name = name;
    }

    public Object apply(Object arguments) {
      refuse(name + " may not be called");
      return null;
    }
  }

  /** Makes, for a session, the rule that looks into plans before names are resolved. */
  public static class Written extends AbstractFunction1 {
    Written(Object nothing) {}

    public Object apply(Object session) {
      return new WrittenRule((SparkSession) session);
    }
  }

  /** Refuses relations and functions by their names; nothing has been evaluated yet. */
  public static class WrittenRule extends Rule {
    private final SparkSession session;

    WrittenRule(SparkSession session) {
      this.session = session;
    }

    public TreeNode apply(TreeNode plan) {
      Policy policy = Policy.of(session);
      if (policy != null && !(plan instanceof ExplainCommand)) {
        written((LogicalPlan) plan, policy);
      }
      if (onlyDelta(session)) {
        noFiles((LogicalPlan) plan);
      }
      return plan;
    }

    /** Refuses a relation that is no name of the catalog and no table of Delta's. */
    private void noFiles(QueryPlan plan) {
      if (plan instanceof UnresolvedRelation) {
        Seq name = ((UnresolvedRelation) plan).multipartIdentifier();
        String first = (String) name.apply(0);
        if (name.size() == 2
            && !first.equalsIgnoreCase("delta")
            && !first.equals(TEMPORARY)
            && !session.catalog().databaseExists(first)) {
          refuse("no files of the kind " + first + " are read here");
        }
      }
      for (Iterator all = plan.expressions().iterator(); all.hasNext(); ) {
        noFiles((Expression) all.next());
      }
      for (Iterator all = plan.children().iterator(); all.hasNext(); ) {
        noFiles((QueryPlan) all.next());
      }
      for (Iterator all = plan.innerChildren().iterator(); all.hasNext(); ) {
        Object inner = all.next();
        if (inner instanceof QueryPlan) {
          noFiles((QueryPlan) inner);
        }
      }
    }

    private void noFiles(Expression expression) {
      if (expression instanceof UnresolvedFunction) {
        noOptions((UnresolvedFunction) expression);
      } else if (expression instanceof PlanExpression) {
        noFiles((QueryPlan) ((PlanExpression) expression).plan());
      }
      for (Iterator all = expression.children().iterator(); all.hasNext(); ) {
        noFiles((Expression) all.next());
      }
    }

    /** Refuses options that may name a file, which would be read while the call is resolved. */
    private static void noOptions(UnresolvedFunction call) {
      String name = ((String) call.nameParts().last()).toLowerCase(Locale.ROOT);
      Integer most = (Integer) FILES_IN_OPTIONS.get(name);
      if (most != null && call.arguments().size() > most.intValue()) {
        refuse(name + " may not have options, which may name a file");
      }
    }

    private void written(QueryPlan plan, Policy policy) {
      if (plan instanceof Command
          || plan instanceof ParsedStatement
          || plan instanceof PlanWithUnresolvedIdentifier) {
        refuse("it holds " + plan.nodeName());
      } else if (plan instanceof UnresolvedRelation) {
        policy.named(((UnresolvedRelation) plan).multipartIdentifier());
      } else if (plan instanceof UnresolvedTableValuedFunction) {
        String name = ((UnresolvedTableValuedFunction) plan).name().mkString(".");
        if (!policy.tables.contains(name.toLowerCase(Locale.ROOT))) {
          refuse(name + " may not stand for a table");
        }
      }
      for (Iterator all = plan.expressions().iterator(); all.hasNext(); ) {
        written((Expression) all.next(), policy);
      }
      for (Iterator all = plan.children().iterator(); all.hasNext(); ) {
        written((QueryPlan) all.next(), policy);
      }
      for (Iterator all = plan.innerChildren().iterator(); all.hasNext(); ) {
        Object inner = all.next();
        if (inner instanceof QueryPlan) {
          written((QueryPlan) inner, policy);
        }
      }
    }

    private void written(Expression expression, Policy policy) {
      if (expression instanceof UnresolvedFunction) {
        policy.called(((UnresolvedFunction) expression).nameParts().mkString("."));
        noOptions((UnresolvedFunction) expression);
      } else if (expression instanceof UnresolvedGenerator) {
        policy.called(((UnresolvedGenerator) expression).name().unquotedString());
      } else if (expression instanceof ExpressionWithUnresolvedIdentifier) {
        refuse("IDENTIFIER may not be called");
      } else if (expression instanceof PlanExpression) {
        written((QueryPlan) ((PlanExpression) expression).plan(), policy);
      }
      for (Iterator all = expression.children().iterator(); all.hasNext(); ) {
        written((Expression) all.next(), policy);
      }
    }
  }

  /** Makes, for a session, the check of plans that are analysed. */
  public static class Analysed extends AbstractFunction1 {
    private final SparkSession session;

    Analysed(SparkSession session) {
      this.session = session;
    }

    public Object apply(Object given) {
      if (session == null) {
        return new Analysed((SparkSession) given);
      }
      Policy policy = Policy.of(session);
      if (policy != null && !(given instanceof ExplainCommand)) {
        new Reading(policy).whole((LogicalPlan) given);
      }
      if (onlyDelta(session)) {
        noOther((LogicalPlan) given);
      }
      return BoxedUnit.UNIT;
    }

    private void noOther(QueryPlan plan) {
      boolean relation = plan instanceof LogicalRelation || plan instanceof DataSourceV2Relation;
      if (relation && place(plan) == null || WRITES.contains(plan.getClass().getSimpleName())) {
        refuse("nothing but tables of Delta is read here: " + plan.nodeName());
      }
      for (Iterator all = plan.children().iterator(); all.hasNext(); ) {
        noOther((QueryPlan) all.next());
      }
      for (Iterator all = plan.subqueries().iterator(); all.hasNext(); ) {
        noOther((QueryPlan) all.next());
      }
    }
  }

  /** Whether nothing but Delta is read in a session; Delta itself reads the files of its log. */
  private static boolean onlyDelta(SparkSession session) {
    boolean started = session.sparkContext().getConf().getBoolean(ONLY_DELTA, false);
    org.apache.spark.sql.classic.SparkSession classic =
        (org.apache.spark.sql.classic.SparkSession) session;
    String said = classic.sessionState().conf().getConfString(ONLY_DELTA, "false");
    return (started || said.equals("true")) && !Policy.ofDelta();
  }

  /** Where the Delta table lies that a relation reads; null where it reads anything else. */
  private static Path place(QueryPlan plan) {
    if (plan instanceof DataSourceV2Relation) {
      Table table = ((DataSourceV2Relation) plan).table();
      return table instanceof DeltaTableV2 ? ((DeltaTableV2) table).path() : null;
    }
    if (!(((LogicalRelation) plan).relation() instanceof HadoopFsRelation)) {
      return null;
    }
    FileIndex files = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
    return files instanceof TahoeLogFileIndex ? ((TahoeLogFileIndex) files).path() : null;
  }

  /** One analysed plan: its nodes, its tables, and where values of masked columns go. */
  private static final class Reading {
    private final Policy policy;
    private final Set hidden = new HashSet();

    Reading(Policy policy) {
      this.policy = policy;
    }

    void whole(LogicalPlan plan) {
      node(plan, false);
      values(plan);
    }

    /** @param masking whether a projection lies directly above, which may be the one that masks */
    private void node(QueryPlan plan, boolean masking) {
      if (plan instanceof LogicalRelation || plan instanceof DataSourceV2Relation) {
        table(plan, masking);
        return;
      }
      if (plan instanceof DeserializeToObject
          && ((DeserializeToObject) plan).child() instanceof LocalRelation) {
        // How Spark makes objects of the rows of a result. No statement can say this.
        return;
      }
      if (plan instanceof Command || !NODES.contains(plan.getClass().getSimpleName().replace("$", ""))) {
        refuse("it holds " + plan.nodeName());
      }
      boolean above = plan instanceof Project || plan instanceof SubqueryAlias && masking;
      for (Iterator all = plan.children().iterator(); all.hasNext(); ) {
        node((QueryPlan) all.next(), above);
      }
      for (Iterator all = plan.subqueries().iterator(); all.hasNext(); ) {
        node((QueryPlan) all.next(), false);
      }
    }

    private void table(QueryPlan plan, boolean masking) {
      Path path = null;
      long version = -1;
      if (plan instanceof DataSourceV2Relation) {
        Table table = ((DataSourceV2Relation) plan).table();
        if (table instanceof DeltaTableV2) {
          path = ((DeltaTableV2) table).path();
          version = ((DeltaTableV2) table).initialSnapshot().version();
        }
      } else if (((LogicalRelation) plan).relation() instanceof HadoopFsRelation) {
        FileIndex files = ((HadoopFsRelation) ((LogicalRelation) plan).relation()).location();
        if (files instanceof TahoeLogFileIndex) {
          path = ((TahoeLogFileIndex) files).path();
          version = ((TahoeLogFileIndex) files).version();
        }
      }
      Set masked = path == null ? null : policy.masked(path, version);
      if (masked == null) {
        refuse("it reads what is no table of the project");
      }
      if (!masked.isEmpty() && !masking) {
        refuse("it reads personal data");
      }
      for (Iterator all = plan.output().iterator(); all.hasNext(); ) {
        Attribute column = (Attribute) all.next();
        if (masked.contains(column.name().toLowerCase(Locale.ROOT))) {
          hidden.add(column.exprId());
        }
      }
    }

    private void values(QueryPlan plan) {
      boolean relation = plan instanceof LogicalRelation || plan instanceof DataSourceV2Relation;
      for (Iterator all = plan.expressions().iterator(); !relation && all.hasNext(); ) {
        Expression one = (Expression) all.next();
        value(one, plan instanceof Project && masks(one));
      }
      for (Iterator all = plan.children().iterator(); all.hasNext(); ) {
        values((QueryPlan) all.next());
      }
      for (Iterator all = plan.subqueries().iterator(); all.hasNext(); ) {
        values((QueryPlan) all.next());
      }
    }

    private void value(Expression expression, boolean masking) {
      Object read = expression;
      if (expression instanceof OuterReference) {
        read = ((OuterReference) expression).e();
      } else if (expression instanceof CallMethodViaReflection
          || expression instanceof UserDefinedExpression) {
        refuse(expression.prettyName() + " may not be called");
      }
      if (read instanceof Attribute && hidden.contains(((Attribute) read).exprId()) && !masking) {
        refuse("it reads personal data");
      }
      for (Iterator all = expression.children().iterator(); all.hasNext(); ) {
        value((Expression) all.next(), masking);
      }
    }

    /** Whether an output tells of a value no more than whether it is there. */
    private static boolean masks(Expression output) {
      if (!(output instanceof Alias) || !(((Alias) output).child() instanceof If)) {
        return false;
      }
      If shown = (If) ((Alias) output).child();
      return shown.predicate() instanceof IsNull
          && ((IsNull) shown.predicate()).child() instanceof Attribute
          && shown.trueValue().references().isEmpty()
          && shown.falseValue().references().isEmpty();
    }
  }

  /** What a query may read and call. */
  private static final class Policy {
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
    private static boolean ofDelta() {
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
      String lower = name.toLowerCase(Locale.ROOT);
      if (!functions.contains(lower)) {
        refuse(name + " may not be called");
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
  }
}
