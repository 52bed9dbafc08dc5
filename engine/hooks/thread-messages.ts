/** Messages between the host of hooks and its thread. */
import type {
  DecidingHook,
  HookFallback,
  HookName,
  ToldHook,
} from '../../schema/contracts/hooks.ts'
import type { WayToMain } from './application/private-lines.ts'
import type { ThrownProblem } from './thrown.ts'

/** Arguments of a thread. */
export interface HookThreadData {
  /** Absolute path of the file of hooks. */
  readonly file: string
  /** A call whose middleware fails goes on without it, or is refused. */
  readonly fallback: HookFallback
}

export type HostMessage =
  | {
      readonly type: 'ask'
      readonly id: number
      readonly hook: DecidingHook
      readonly argument: unknown
    }
  | { readonly type: 'tell'; readonly hook: ToldHook; readonly argument: unknown }
  | { readonly type: 'ping' }
  /** SIP is served: an application of drachtio-srf may take calls. */
  | { readonly type: 'serve'; readonly way: WayToMain }
  /** Another thread is in charge: this one ends when it has nothing to do any more. */
  | { readonly type: 'leave' }

export interface LoadedFile {
  readonly hooks: readonly HookName[]
  /** The file is, or has, an application of drachtio-srf. */
  readonly hasApplication: boolean
  /** Absolute paths of the file and of the local files that it imports. */
  readonly files: readonly string[]
  /** Sentences for the operator. */
  readonly warnings: readonly string[]
}

/** Results of a hook that is only told, since the last report. */
export interface ToldReport {
  readonly hook: ToldHook
  readonly count: number
  readonly failures: number
  readonly timeouts: number
  readonly micros: number
  /** The last failure. */
  readonly problem: ThrownProblem | undefined
}

export interface PrintedLine {
  readonly level: 'info' | 'warn'
  readonly text: string
}

export type ThreadMessage =
  | ({ readonly type: 'loaded' } & LoadedFile)
  | {
      readonly type: 'broken'
      readonly problem: ThrownProblem
      /** Also those that the file asks for and that are not there. */
      readonly files: readonly string[]
    }
  /** `answer` is checked, and a plain value. */
  | {
      readonly type: 'answer'
      readonly id: number
      readonly answer: unknown
      readonly micros: number
    }
  | {
      readonly type: 'failed'
      readonly id: number
      readonly problem: ThrownProblem
      readonly micros: number
    }
  | { readonly type: 'told'; readonly reports: readonly ToldReport[] }
  /** An error that nothing in the file has caught. */
  | { readonly type: 'uncaught'; readonly problem: ThrownProblem }
  /** The application takes INVITEs, at this port of loopback. */
  | { readonly type: 'taking'; readonly port: number }
  | { readonly type: 'printed'; readonly lines: readonly PrintedLine[]; readonly dropped: number }
  /** Files that were imported later. */
  | { readonly type: 'imported'; readonly files: readonly string[] }
  /** `usedBytes`: memory of this thread, buffers included. */
  | { readonly type: 'pong'; readonly usedBytes: number }
