internal import CRecordBuffers

/// The memory that OpenSSL takes for a moment with each record.
public enum RecordBuffers {
  /// Has each thread keep the last few of them for itself, from now on, for the whole process: an idle connection still
  /// owns none, and a message no longer pays for two large blocks of malloc's.
  ///
  /// To be called first thing in `main`: OpenSSL takes no other memory once it has taken any.
  ///
  /// - Returns: whether it was early enough. If not, everything works, and a message costs a tenth more.
  @discardableResult
  public static func keep() -> Bool { sallyport_keep_record_buffers() == 1 }
}
