/** What every command of `tollgate` is made of, and what the outside world gives to it. */
import type { Readable, Writable } from 'node:stream'
import type { Boot, Clocks, Schedule } from '../../schema/clock.ts'
import type { Environment } from '../config.ts'
import type { PassedSocket } from '../socket-activation.ts'

/** Everything that is not an argument: it enters in `main.ts`, and a test gives its own. */
export interface World extends Clocks {
  readonly environment: Environment
  /** Of this process. */
  readonly pid: number
  /** Of this machine. */
  readonly hostName: string
  /** Of this machine, as others see them. */
  readonly networkAddresses: () => readonly string[]
  /** Undefined where it cannot be told. */
  readonly boot: Boot | undefined
  /** Names that stand in `.env`. */
  readonly settingsFile: readonly string[]
  /** Those of them that count: the environment has no other value for them. */
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

export interface Input {
  /** What stands behind the name of the command; empty when the command takes nothing there. */
  readonly argument: string
  /** Of a command that reads them by itself. */
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
  /** It has options of its own form, which `details` tells of. */
  readonly readsItsWords?: true
  /**
   * It may make the database: `always` where there is none, otherwise with `--create`, which makes the folder of the
   * file, too. Absent: there must be one.
   */
  readonly createsDatabase?: 'always' | 'with --create'
  /** Printed below the options by `--help`. */
  readonly details?: () => string
  /** @throws {WrongUsage} and whatever stops it; the caller turns both into one line. */
  readonly run: (input: Input, world: World) => Promise<ExitCode>
}

/** The command cannot run as it was called or set up: exit code 2. */
export class WrongUsage extends Error {
  override readonly name = 'WrongUsage'
}
