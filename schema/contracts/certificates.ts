/** A certificate that this process shows to its peers. */
export interface CertificateStatus {
  /** Listeners that show it; `stir`: it signs calls. */
  readonly use: 'api' | 'edge' | 'sip' | 'stir'
  /** PEM file, or the key of STIR. */
  readonly file: string
  /** Last moment at which it is valid. Milliseconds UTC. */
  readonly notAfter: number
}
