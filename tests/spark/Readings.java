package tests;

import java.util.ArrayList;
import java.util.Iterator;
import java.util.List;
import org.antlr.v4.runtime.CharStreams;
import org.antlr.v4.runtime.Token;
import org.apache.spark.sql.catalyst.parser.SqlBaseLexer;
import org.apache.spark.sql.catalyst.parser.UpperCaseCharStream;

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
