package tidemark;

import java.util.Arrays;
import java.util.HashSet;
import java.util.Locale;
import java.util.Set;
import org.apache.hadoop.fs.Path;
import org.apache.spark.sql.catalyst.expressions.Alias;
import org.apache.spark.sql.catalyst.expressions.Attribute;
import org.apache.spark.sql.catalyst.expressions.CallMethodViaReflection;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.If;
import org.apache.spark.sql.catalyst.expressions.IsNull;
import org.apache.spark.sql.catalyst.expressions.OuterReference;
import org.apache.spark.sql.catalyst.expressions.UserDefinedExpression;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.DeserializeToObject;
import org.apache.spark.sql.catalyst.plans.logical.LocalRelation;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.Project;
import org.apache.spark.sql.catalyst.plans.logical.SubqueryAlias;
import org.apache.spark.sql.connector.catalog.Table;
import org.apache.spark.sql.delta.catalog.DeltaTableV2;
import org.apache.spark.sql.delta.files.TahoeLogFileIndex;
import org.apache.spark.sql.execution.datasources.FileIndex;
import org.apache.spark.sql.execution.datasources.HadoopFsRelation;
import org.apache.spark.sql.execution.datasources.LogicalRelation;
import org.apache.spark.sql.execution.datasources.v2.DataSourceV2Relation;
import scala.collection.Iterator;

/** One analysed plan: its nodes, its tables, and where values of masked columns go. */
final class Reading {
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
    if (plan instanceof Command
        || !NODES.contains(plan.getClass().getSimpleName().replace("$", ""))) {
      Policy.refuse("it holds " + plan.nodeName());
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
      Policy.refuse("it reads what is no table of the project");
    }
    if (!masked.isEmpty() && !masking) {
      Policy.refuse("it reads personal data");
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
      Policy.refuse(expression.prettyName() + " may not be called");
    }
    if (read instanceof Attribute && hidden.contains(((Attribute) read).exprId()) && !masking) {
      Policy.refuse("it reads personal data");
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

  /** Where the Delta table lies that a relation reads; null where it reads anything else. */
  static Path place(QueryPlan plan) {
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
}
