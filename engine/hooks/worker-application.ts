/**
 * The application of drachtio-srf in the thread of hooks, as that thread uses it. It is made before
 * the file is imported, because a file may make its own `new Srf()` and connect it.
 */
import type { HookFunction } from './loaded-hooks.ts'
import type { WayToMain } from './application/private-lines.ts'
import type { PrintedLine } from './thread-messages.ts'

export interface HookApplication {
  /** The default export, a function, gets its `srf`. */
  startApplication(middleware: HookFunction): Promise<void>
  /** Whether the file has connected an `Srf`, or its middleware was started. */
  readonly isUsed: boolean
  /** Calls and requests that have not come to their end: the thread stays for them. */
  readonly pending: number
  stop(): Promise<void>
}

/** Makes the application of a thread; absent: files with middleware are refused. */
export type CreateApplication = (world: {
  /** Known as soon as the host says that SIP is served. */
  readonly main: Promise<WayToMain>
  readonly onTaking: (port: number) => void
  readonly print: (line: PrintedLine) => void
  /** An error of a middleware: with its stack, which has file and line. */
  readonly onError: (error: unknown) => void
}) => Promise<HookApplication>
