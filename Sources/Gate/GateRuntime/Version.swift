/// The version of the programs.
package enum Version {
  package static let text = "0.1.0"
}
