/** The parts of a `tollgate` command, and the process that it runs in. */
import type { Readable, Writable } from 'node:stream'
import type { Boot, Clocks, Schedule } from '../../schema/clock.ts'
import type { Environment } from '../config.ts'
import type { PassedSocket } from '../socket-activation.ts'

/** Everything that is not an argument: `main.ts` provides it, and tests provide their own. */
export interface CommandContext extends Clocks {
  readonly environment: Environment
  /** Id of this process. */
  readonly pid: number
  /** Name of this machine. */
  readonly hostName: string
  /** Addresses of this machine, as others see them. */
  readonly networkAddresses: () => readonly string[]
  /** `--new`: an empty database may begin beside the files of one that is gone. */
  readonly isNewDatabase?: boolean
  /** Undefined where it is not known. */
  readonly boot: Boot | undefined
  /** Names that stand in `.env`. */
  readonly settingsFile: readonly string[]
  /** Names of `.env` that take effect: the environment has no other value for them. */
  readonly settingsFromFile: readonly string[]
  /** From 0 up to 1. */
  readonly random: () => number
  /** Cryptographically secure. */
  readonly randomBytes: (size: number) => Buffer
  /** Version 4 (RFC 9562 §5.4). */
  readonly newUuid: () => string
  readonly schedule: Schedule
  /** One line on standard output. */
  readonly print: (line: string) => void
  /** One line on standard error. */
  readonly complain: (line: string) => void
  /** Standard input and output, for a command that speaks a protocol over them. */
  readonly streams: { readonly input: Readable; readonly output: Writable }
  /** Standard input up to its end. */
  readonly readInput: () => Promise<string>
  /** Calls `listener` at each SIGTERM or SIGINT from now on. */
  readonly onStopSignal: (listener: (signal: StopSignal) => void) => void
  /** Calls `listener` at each SIGHUP from now on, unless that means that the terminal is gone. */
  readonly onReloadSignal: (listener: () => void) => void
  /** Sockets that the service manager has bound. @throws {WrongSetting} one of them is none. */
  readonly passedSockets: () => readonly PassedSocket[]
  /** Calls `listener` once for an error that nothing caught; the process ends after it. */
  readonly onCrash: (listener: (error: unknown) => void) => void
  /** Gives the memory back that is not needed any more. Takes a moment. */
  readonly releaseMemory: () => void
}

export type StopSignal = 'SIGTERM' | 'SIGINT'

/** 0 done, 1 failed, 2 wrong usage. */
export type ExitCode = 0 | 1 | 2

export interface Option {
  /** Shown in help, such as `NAME`. Absent: the option is a switch, and takes no value. */
  readonly value?: string
  readonly meaning: string
  readonly isRequired?: boolean
}

/** The switch of commands that may begin a database. */
export const newDatabase = {
  new: { meaning: 'Begins an empty database beside the files of one that is missing or empty.' },
} as const satisfies Readonly<Record<string, Option>>

export interface CommandInput {
  /** The argument after the name of the command; empty when there is none. */
  readonly argument: string
  /** Words of a command that reads them by itself. */
  readonly words: readonly string[]
  /** A switch that is given is `on`. */
  readonly options: Readonly<Record<string, string | undefined>>
}

export interface Command {
  /** One word or two, such as `key create`. */
  readonly name: string
  readonly summary: string
  /** Shown in help, such as `FILE.json`. Absent: the command takes none. */
  readonly argument?: string
  readonly options?: Readonly<Record<string, Option>>
  /** The options have another form, which `details` describes. */
  readonly readsItsWords?: true
  /**
   * Whether the command creates a missing database: `always`, or only with `--create`, which
   * creates the folder of the file, too. Absent: the database must exist.
   */
  readonly createsDatabase?: 'always' | 'with --create'
  /** Printed below the options by `--help`. */
  readonly details?: () => string
  /** @throws {WrongUsage} and other errors; the caller prints either as one line. */
  readonly run: (input: CommandInput, context: CommandContext) => Promise<ExitCode>
}

/** The command cannot run as it was called or set up: exit code 2. */
export class WrongUsage extends Error {
  override readonly name = 'WrongUsage'
}
