/** Errors at the start; everything later is an event or a value. */

/** An address cannot be listened on: taken, not ours, or not allowed. */
export class ListenError extends Error {
  override readonly name = 'ListenError'
  /** The protocol, or `admin`. */
  readonly what: string
  readonly host: string
  readonly port: number
  /** The reason's code, `EADDRINUSE` for instance. */
  readonly code: string

  constructor(what: string, host: string, port: number, cause: unknown) {
    const code = errorCode(cause)
    super(`cannot listen on ${what}/${host}:${port}: ${code}`, { cause })
    this.what = what
    this.host = host
    this.port = port
    this.code = code
  }
}

/** A certificate, a key or a list of authorities cannot be used. */
export class CertificateError extends Error {
  override readonly name = 'CertificateError'
  readonly file: string

  constructor(file: string, cause: unknown) {
    const reason = cause instanceof Error ? cause.message : String(cause)
    super(`cannot use ${file} for TLS: ${reason.split('\n')[0]}`, { cause })
    this.file = file
  }
}

/** An option, a variable or the configuration file says what cannot be done. */
export class OptionError extends Error {
  override readonly name = 'OptionError'
}

/** The code of a system error, or else its text. */
export const errorCode = (error: unknown): string => {
  if (!(error instanceof Error)) return String(error)
  return 'code' in error && typeof error.code === 'string' ? error.code : error.message
}
