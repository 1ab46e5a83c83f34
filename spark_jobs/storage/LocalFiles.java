package tidemark;

import java.io.IOException;
import java.net.URI;
import java.net.URISyntaxException;
import java.nio.file.Files;
import java.nio.file.LinkOption;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.fs.ChecksumFs;
import org.apache.hadoop.fs.DelegateToFileSystem;
import org.apache.hadoop.fs.FileStatus;
import org.apache.hadoop.fs.FsConstants;
import org.apache.hadoop.fs.FsServerDefaults;
import org.apache.hadoop.fs.LocalFileSystem;
import org.apache.hadoop.fs.Path;
import org.apache.hadoop.fs.RawLocalFileSystem;
import org.apache.hadoop.fs.local.LocalConfigKeys;
import org.apache.hadoop.fs.permission.FsPermission;

/**
 * Hadoop's local file system, without a process for each file.
 *
 * <p>Without its native library, Hadoop starts {@code chmod} for each file and directory that it
 * creates, and {@code readlink} for each file that it looks up before a rename. Java does both.
 */
public class LocalFiles extends LocalFileSystem {
  private static final String MODE = "unix:mode";
  // What chmod(1) sets by a number of four digits, and what it keeps of a directory's mode.
  private static final int GIVEN = 01777;
  private static final int KEPT = 06000;

  public LocalFiles() {
    super(new Raw());
  }

  /** The same for Hadoop's other interface, through which Delta and checkpoints are written. */
  public static class Context extends ChecksumFs {
    public Context(URI uri, Configuration configuration) throws IOException, URISyntaxException {
      super(new RawContext(configuration));
    }
  }

  private static class Raw extends RawLocalFileSystem {
    @Override
    public void setPermission(Path path, FsPermission permission) throws IOException {
      java.nio.file.Path file = pathToFile(path).toPath();
      int mode = permission.toShort() & GIVEN;
      if (Files.isDirectory(file, new LinkOption[0])) {
        mode |= ((Integer) Files.getAttribute(file, MODE, new LinkOption[0])).intValue() & KEPT;
      }
      Files.setAttribute(file, MODE, Integer.valueOf(mode), new LinkOption[0]);
    }

    @Override
    public FileStatus getFileLinkStatus(Path path) throws IOException {
      return Files.isSymbolicLink(pathToFile(path).toPath())
          ? super.getFileLinkStatus(path)
          : getFileStatus(path);
    }
  }

  private static class RawContext extends DelegateToFileSystem {
    RawContext(Configuration configuration) throws IOException, URISyntaxException {
      super(FsConstants.LOCAL_FS_URI, new Raw(), configuration, "file", false);
    }

    @Override
    public int getUriDefaultPort() {
      return -1;
    }

    @Override
    public FsServerDefaults getServerDefaults(Path path) throws IOException {
      return LocalConfigKeys.getServerDefaults();
    }

    @Override
    public FsServerDefaults getServerDefaults() throws IOException {
      return LocalConfigKeys.getServerDefaults();
    }

    @Override
    public boolean isValidName(String name) {
      return true;
    }
  }
}
