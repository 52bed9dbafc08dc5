/** A certificate that this process shows to its peers. */
export interface CertificateStatus {
  /** Listeners that show it. */
  readonly use: 'api' | 'edge' | 'sip'
  /** PEM file. */
  readonly file: string
  /** Last moment at which it is valid. Milliseconds UTC. */
  readonly notAfter: number
}
