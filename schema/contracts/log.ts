/**
 * Writes one line of the log. The SIP server, which stands by itself, declares the same in its
 * `engine/sip-server/options.ts`.
 */
export type Log = (
  level: 'debug' | 'info' | 'warn' | 'error',
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void
