package tests;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import java.util.Set;
import java.util.TreeSet;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.Token;
import org.apache.spark.SparkThrowable;
import org.apache.spark.sql.SparkSession;
import org.apache.spark.sql.catalyst.analysis.UnresolvedFunction;
import org.apache.spark.sql.catalyst.analysis.UnresolvedRelation;
import org.apache.spark.sql.catalyst.analysis.UnresolvedTableValuedFunction;
import org.apache.spark.sql.catalyst.FunctionIdentifier;
import org.apache.spark.sql.catalyst.QueryPlanningTracker;
import org.apache.spark.sql.catalyst.expressions.Expression;
import org.apache.spark.sql.catalyst.expressions.PlanExpression;
import org.apache.spark.sql.catalyst.parser.ParserInterface;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;
import org.apache.spark.sql.catalyst.plans.QueryPlan;
import org.apache.spark.sql.catalyst.plans.logical.Command;
import org.apache.spark.sql.catalyst.plans.logical.LogicalPlan;
import org.apache.spark.sql.catalyst.plans.logical.ParsedStatement;
import org.apache.spark.sql.catalyst.plans.logical.UnresolvedWith;
import org.apache.spark.sql.internal.SessionState;

/** How Spark reads texts; many at once, because each call from Python takes its time. */
public final class Readings {

  /** For each text its tokens, one a line with its place, without comments and hints. */
  public List lexemes(List texts) {
    List found = new ArrayList();
    for (Iterator all = texts.iterator(); all.hasNext(); ) {
      found.add(lexemes((String) all.next()));
    }
    return found;
  }

  /** For each text what its plan names, one a line; "error" where it does not parse. */
  public List names(SparkSession session, List texts) {
    ParserInterface parser =
        ((org.apache.spark.sql.classic.SparkSession) session).sessionState().sqlParser();
    List found = new ArrayList();
    for (Iterator all = texts.iterator(); all.hasNext(); ) {
      TreeSet names = new TreeSet();
      try {
        names(parser.parsePlan((String) all.next()), names);
      } catch (Exception refused) {
        names.clear();
        names.add("error");
      }
      found.add(String.join("\n", names));
    }
    return found;
  }

  /** For each text the condition of the error with which it is refused; "" for none. */
  public List conditions(SparkSession session, List texts) {
    SessionState state = ((org.apache.spark.sql.classic.SparkSession) session).sessionState();
    List found = new ArrayList();
    for (Iterator all = texts.iterator(); all.hasNext(); ) {
      String condition = "";
      try {
        LogicalPlan plan = state.sqlParser().parsePlan((String) all.next());
        state.analyzer().executeAndCheck(plan, new QueryPlanningTracker(scala.Option.empty()));
      } catch (Exception refused) {
        condition =
            refused instanceof SparkThrowable
                ? ((SparkThrowable) refused).getCondition()
                : refused.getClass().getName();
      }
      found.add(condition);
    }
    return found;
  }

  /** How Spark describes each of its functions. */
  public List usages(SparkSession session, List names) throws Exception {
    SessionState state = ((org.apache.spark.sql.classic.SparkSession) session).sessionState();
    List found = new ArrayList();
    for (Iterator all = names.iterator(); all.hasNext(); ) {
      FunctionIdentifier name = new FunctionIdentifier((String) all.next());
      found.add(state.catalog().lookupFunctionInfo(name).getUsage());
    }
    return found;
  }

  private static void names(QueryPlan plan, Set names) {
    if (plan instanceof Command || plan instanceof ParsedStatement) {
      names.add("command " + plan.nodeName());
    } else if (plan instanceof UnresolvedRelation) {
      names.add("relation " + ((UnresolvedRelation) plan).multipartIdentifier().mkString("."));
    } else if (plan instanceof UnresolvedTableValuedFunction) {
      names.add("function " + ((UnresolvedTableValuedFunction) plan).name().mkString("."));
    } else if (plan instanceof UnresolvedWith) {
      scala.collection.Iterator all = ((UnresolvedWith) plan).cteRelations().iterator();
      while (all.hasNext()) {
        names((QueryPlan) ((scala.Product) all.next()).productElement(1), names);
      }
    }
    scala.collection.Iterator expressions = plan.expressions().iterator();
    while (expressions.hasNext()) {
      names((Expression) expressions.next(), names);
    }
    scala.collection.Iterator children = plan.children().iterator();
    while (children.hasNext()) {
      names((QueryPlan) children.next(), names);
    }
  }

  private static void names(Expression expression, Set names) {
    if (expression instanceof UnresolvedFunction) {
      names.add("function " + ((UnresolvedFunction) expression).nameParts().mkString("."));
    } else if (expression instanceof PlanExpression) {
      names((QueryPlan) ((PlanExpression) expression).plan(), names);
    }
    scala.collection.Iterator children = expression.children().iterator();
    while (children.hasNext()) {
      names((Expression) children.next(), names);
    }
  }

  private String lexemes(String text) {
    SqlBaseLexer lexer = new SqlBaseLexer(new UpperCaseCharStream(CharStreams.fromString(text)));
    lexer.removeErrorListeners();
    StringBuilder lines = new StringBuilder();
    boolean hint = false;
    for (Iterator all = lexer.getAllTokens().iterator(); all.hasNext(); ) {
      Token token = (Token) all.next();
      if (token.getType() == SqlBaseLexer.HENT_START) {
        hint = true;
      } else if (token.getType() == SqlBaseLexer.HENT_END && hint) {
        hint = false;
      } else if (token.getChannel() == Token.DEFAULT_CHANNEL && !hint) {
        lines.append(token.getStartIndex()).append(' ').append(token.getType()).append(' ');
        lines.append(token.getText().replace("\n", "\\n")).append('\n');
      }
    }
    return lexer.has_unclosed_bracketed_comment ? "unclosed" : lines.toString();
  }
}
