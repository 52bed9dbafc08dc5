/** JSON lines on standard error, written behind so that a slow reader never holds up a call. */
import { destination, pino, stdSerializers, stdTimeFunctions } from 'pino'
import type { Log } from '../schema/contracts/log.ts'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'fatal'

export interface Logger {
  readonly log: Log
  /** Resolves when what was logged before is written; never without a reader. */
  flush(): Promise<void>
  /** Writes a `fatal` line before it returns, and as much of what waits as can be. */
  lastWords(message: string, fields: Readonly<Record<string, unknown>>): void
}

const standardError = 2
/** While there is no reader, lines wait up to this size; further ones are dropped. */
const maxWaitingBytes = 16 * 1024 * 1024

/** @param file an open file descriptor. */
export function createLogger(level: LogLevel | 'silent', file = standardError): Logger {
  // With a minimal length of 0 its `flush` would not wait for the line that is being written.
  const output = destination({ dest: file, sync: false, minLength: 1, maxLength: maxWaitingBytes })
  // A closed pipe at the other end is no reason to drop calls.
  output.on('error', () => {})
  const options = {
    level,
    base: null,
    timestamp: stdTimeFunctions.isoTime,
    formatters: { level: (label: string) => ({ level: label }) },
    serializers: { error: level === 'debug' ? stdSerializers.err : withoutStack },
  }
  const logger = pino(options, output)
  return {
    log: (messageLevel, message, fields) => {
      if (fields === undefined) logger[messageLevel](message)
      else logger[messageLevel](fields, message)
    },
    flush: () => new Promise((resolve) => output.flush(() => resolve())),
    lastWords: (message, fields) => {
      try {
        output.flushSync()
        pino(options, destination({ dest: file, sync: true })).fatal(fields, message)
      } catch {
        // Its reader has gone.
      }
    },
  }
}

/** An error as an operator needs it; level debug adds the stack. */
function withoutStack(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const code = 'code' in error ? { code: error.code } : {}
  return { type: error.name, message: error.message, ...code }
}
