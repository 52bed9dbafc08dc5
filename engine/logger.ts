/** JSON lines on standard error, written behind so that a slow terminal never holds up a call. */
import { destination, pino, stdSerializers, stdTimeFunctions } from 'pino'

export type LogLevel = 'debug' | 'info' | 'warn' | 'error' | 'fatal'

export type Log = (
  level: LogLevel,
  message: string,
  fields?: Readonly<Record<string, unknown>>,
) => void

export interface Logger {
  readonly log: Log
  /** Writes at once what is still waiting; called before the process ends. */
  flush(): void
}

const standardError = 2

/** @param file an open file descriptor. */
export function createLogger(level: LogLevel | 'silent', file = standardError): Logger {
  const output = destination({ dest: file, sync: false })
  // A closed pipe at the other end is no reason to drop calls.
  output.on('error', () => {})
  const logger = pino(
    {
      level,
      base: null,
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: level === 'debug' ? stdSerializers.err : withoutStack },
    },
    output,
  )
  return {
    log: (messageLevel, message, fields) => {
      if (fields === undefined) logger[messageLevel](message)
      else logger[messageLevel](fields, message)
    },
    flush: () => {
      try {
        output.flushSync()
      } catch {
        // Its reader has gone: nobody is left to tell.
      }
    },
  }
}

/** What an operator needs to know; whoever debugs gets the stack too. */
function withoutStack(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  const code = 'code' in error ? { code: error.code } : {}
  return { type: error.name, message: error.message, ...code }
}
