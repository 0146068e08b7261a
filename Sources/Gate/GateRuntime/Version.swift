internal import Commands

/// The version of the gate, in its log, metrics and documents.
package enum Version {
  package static let text = ProjectVersion.number
}
