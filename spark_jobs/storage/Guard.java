package tidemark;

import java.util.Arrays;
import java.util.HashMap;
import java.util.HashSet;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.SparkSessionExtensions;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.analysis.ExpressionWithUnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.PlanWithUnresolvedIdentifier;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedGenerator;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.ExpressionInfo;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.catalyst.rules.Rule;
import org.apache.spark.sql.catalyst.trees.TreeNode;
import org.apache.spark.sql.execution.command.ExplainCommand;
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
 * Policy#KEY}, or what {@link #hold} was given in this thread.
 *
 * <p>Where the setting {@link #ONLY_DELTA} is true, nothing but Delta tables is read, whether or not
 * a policy holds. No statement takes that back from what the process was started with.
 */
public final class Guard extends AbstractFunction1 {
  public static final String ONLY_DELTA = "spark.tidemark.onlyDelta";
  // The schema of views that all sessions share; the catalog does not count it.
  private static final String TEMPORARY = "global_temp";
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
    Policy.HELD.set(policy.isEmpty() ? null : policy);
  }

  /** Whether a policy holds for what this thread analyses. */
  public static boolean holds() {
    return Policy.HELD.get() != null;
  }

  /** Builds a function that nobody may call. */
  public static class Never extends AbstractFunction1 {
    private final String name;

    Never(String name) {
      this.name = name;
    }

    public Object apply(Object arguments) {
      Policy.refuse(name + " may not be called");
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
          Policy.refuse("no files of the kind " + first + " are read here");
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
        Policy.refuse(name + " may not have options, which may name a file");
      }
    }

    private void written(QueryPlan plan, Policy policy) {
      if (plan instanceof Command
          || plan instanceof ParsedStatement
          || plan instanceof PlanWithUnresolvedIdentifier) {
        Policy.refuse("it holds " + plan.nodeName());
      } else if (plan instanceof UnresolvedRelation) {
        policy.named(((UnresolvedRelation) plan).multipartIdentifier());
      } else if (plan instanceof UnresolvedTableValuedFunction) {
        policy.table(((UnresolvedTableValuedFunction) plan).name().mkString("."));
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
        Policy.refuse("IDENTIFIER may not be called");
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
      if (relation && Reading.place(plan) == null
          || WRITES.contains(plan.getClass().getSimpleName())) {
        Policy.refuse("nothing but tables of Delta is read here: " + plan.nodeName());
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

}
