package tidemark;

import io.delta.storage.HadoopFileSystemLogStore;
import java.io.ByteArrayOutputStream;
import java.io.FileNotFoundException;
import java.io.IOException;
import java.io.InterruptedIOException;
import java.net.SocketTimeoutException;
import java.nio.charset.StandardCharsets;
import java.nio.file.FileAlreadyExistsException;
import java.util.Arrays;
import java.util.Iterator;
import java.util.UUID;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.FSDataInputStream;
import org.apache.hadoop.fs.FSDataOutputStream;
import org.apache.hadoop.fs.FSDataOutputStreamBuilder;
import org.apache.hadoop.fs.FileSystem;
import org.apache.hadoop.fs.Path;

/**
 * Delta's log in S3: of all who write one version, in whichever process, the store lets one.
 *
 * <p>A commit is a conditional write ("If-None-Match: *"), as it is for delta-rs. A failed write
 * says little: it may have arrived and only its answer got lost, and what the SDK then sent again
 * was refused because of it. So what lies in the store decides: every write has a number of its
 * own, which is kept with it.
 */
public class ConditionalLogStore extends HadoopFileSystemLogStore {
  private static final String CONDITION = "fs.option.create.conditional.overwrite";
  private static final String WRITE_ID = "tidemark-write-id";
  private static final int TRIES = 4;
  private static final long PAUSE_MILLISECONDS = 500;

  public ConditionalLogStore(Configuration configuration) {
    super(configuration);
  }

  public Boolean isPartialWriteVisible(Path path, Configuration configuration) {
    return Boolean.FALSE;
  }

  /**
   * Writes a file.
   *
   * @throws FileAlreadyExistsException somebody else has written it
   * @throws IOException it is not known whether it was written; it may still appear
   */
  public void write(Path path, Iterator actions, Boolean overwrite, Configuration configuration)
      throws IOException {
    FileSystem files = path.getFileSystem(configuration);
    // As a whole: the lines can be had once, and may be needed again.
    byte[] content = lines(actions);
    if (overwrite.booleanValue()) {
      put(files.create(path, true), content);
    } else {
      create(files, path, content);
    }
  }

  private static void create(FileSystem files, Path path, byte[] content) throws IOException {
    String id = UUID.randomUUID().toString();
    for (int tried = 1; true; tried++) {
      try {
        FSDataOutputStreamBuilder builder = files.createFile(path);
        builder.overwrite(false);
        builder.must(CONDITION, true);
        builder.must("fs.s3a.create.header." + WRITE_ID, id);
        put((FSDataOutputStream) builder.build(), content);
        return;
      } catch (IOException failure) {
        if (failure instanceof InterruptedIOException
            && !(failure instanceof SocketTimeoutException)) {
          Thread.currentThread().interrupt();
          throw failure;
        }
        if (isThere(files, path, id, content, failure)) {
          return;
        }
        if (tried == TRIES) {
          throw new IOException("it is not known whether " + path + " was written", failure);
        }
        // Nothing is there. The same number again: should the first write arrive late, either of
        // the two is this one.
        pause(tried * PAUSE_MILLISECONDS);
      }
    }
  }

  /**
   * Whether a write that failed is there nevertheless.
   *
   * @throws FileAlreadyExistsException somebody else's is there
   * @throws IOException it cannot be told
   */
  private static boolean isThere(
      FileSystem files, Path path, String id, byte[] content, IOException failure)
      throws IOException {
    try {
      byte[] found = files.getXAttr(path, "header." + WRITE_ID);
      // A store that keeps no such number must not make a stranger's of an own commit, which has
      // the unique id of its transaction in it.
      if (found == null ? Arrays.equals(content, read(files, path)) : isText(found, id)) {
        return true;
      }
    } catch (FileNotFoundException absent) {
      return false;
    } catch (IOException unknown) {
      failure.addSuppressed(unknown);
      throw new IOException("it is not known whether " + path + " was written", failure);
    }
    FileAlreadyExistsException refusal = new FileAlreadyExistsException(path.toString());
    refusal.initCause(failure);
    throw refusal;
  }

  private static boolean isText(byte[] found, String text) {
    return Arrays.equals(found, text.getBytes(StandardCharsets.UTF_8));
  }

  private static byte[] read(FileSystem files, Path path) throws IOException {
    FSDataInputStream stream = files.open(path);
    try {
      return stream.readAllBytes();
    } finally {
      stream.close();
    }
  }

  /** Closing publishes: a stream that did not take all of it is given up instead. */
  private static void put(FSDataOutputStream stream, byte[] content) throws IOException {
    boolean whole = false;
    try {
      stream.write(content);
      whole = true;
    } finally {
      if (!whole) {
        stream.abort();
      }
    }
    stream.close();
  }

  private static byte[] lines(Iterator actions) throws IOException {
    ByteArrayOutputStream content = new ByteArrayOutputStream();
    while (actions.hasNext()) {
      content.write((actions.next() + "\n").getBytes(StandardCharsets.UTF_8));
    }
    return content.toByteArray();
  }

  private static void pause(long milliseconds) throws IOException {
    try {
      Thread.sleep(milliseconds);
    } catch (InterruptedException interrupted) {
      Thread.currentThread().interrupt();
      throw new InterruptedIOException(interrupted.getMessage());
    }
  }
}
