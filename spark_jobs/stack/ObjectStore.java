package tidemark;

import java.io.FileInputStream;
import java.io.InputStream;
import java.util.Properties;
import java.util.concurrent.locks.Lock;
import java.util.concurrent.locks.ReadWriteLock;
import java.util.concurrent.locks.ReentrantReadWriteLock;
import org.gaul.s3proxy.BlobStores;
import org.gaul.s3proxy.S3Proxy;
import org.gaul.s3proxy.blobstore.BlobStore;
import org.gaul.s3proxy.blobstore.ForwardingBlobStore;
import org.gaul.s3proxy.blobstore.domain.Blob;
import org.gaul.s3proxy.blobstore.domain.BlobAccess;
import org.gaul.s3proxy.blobstore.domain.ContainerAccess;
import org.gaul.s3proxy.blobstore.domain.PageSet;
import org.gaul.s3proxy.blobstore.options.CopyOptions;
import org.gaul.s3proxy.blobstore.options.ListContainerOptions;
import org.gaul.s3proxy.blobstore.options.PutOptions;

/**
 * S3Proxy over a directory, with listings as S3 has them: of one moment.
 *
 * <p>A directory is read entry by entry. A listing that overlaps writes may have the later of two
 * and lack the earlier, and has files that are still being written; readers of a table's log take
 * such a gap for damage. Here nothing is written while a listing is made.
 */
public final class ObjectStore extends ForwardingBlobStore {
  private final Lock changing;
  private final Lock alone;

  private ObjectStore(BlobStore files) {
    super(files);
    ReadWriteLock lock = new ReentrantReadWriteLock(true);
    changing = lock.readLock();
    alone = lock.writeLock();
  }

  /** Serves what a file of properties describes, which is the one argument. */
  public static void main(String[] arguments) throws Exception {
    Properties properties = new Properties();
    InputStream file = new FileInputStream(arguments[0]);
    properties.load(file);
    file.close();
    BlobStore files = BlobStores.create("filesystem-nio2", properties);
    S3Proxy.Builder builder = S3Proxy.Builder.fromProperties(properties);
    builder.blobStore(new ObjectStore(files)).build().start();
  }

  /** Nothing is for callers without a key, whatever rights the files below have. */
  public ContainerAccess getContainerAccess(String container) {
    return ContainerAccess.PRIVATE;
  }

  public BlobAccess getBlobAccess(String container, String name) {
    return BlobAccess.PRIVATE;
  }

  public PageSet list(String container, ListContainerOptions options) {
    alone.lock();
    try {
      return delegate().list(container, options);
    } finally {
      alone.unlock();
    }
  }

  public String putBlob(String container, Blob blob, PutOptions options) {
    changing.lock();
    try {
      return delegate().putBlob(container, blob, options);
    } finally {
      changing.unlock();
    }
  }

  public String copyBlob(
      String container, String name, String toContainer, String toName, CopyOptions options) {
    changing.lock();
    try {
      return delegate().copyBlob(container, name, toContainer, toName, options);
    } finally {
      changing.unlock();
    }
  }

  /** Folders that get empty go too, which must not happen to one that is about to be written to. */
  public void removeBlob(String container, String name) {
    alone.lock();
    try {
      delegate().removeBlob(container, name);
    } finally {
      alone.unlock();
    }
  }

  public void removeBlobs(String container, Iterable names) {
    alone.lock();
    try {
      delegate().removeBlobs(container, names);
    } finally {
      alone.unlock();
    }
  }
}
