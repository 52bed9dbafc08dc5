import { PassThrough } from 'node:stream'
import type { CommandContext } from '../../../engine/commands/command.ts'

export interface FakeWorld extends CommandContext {
  readonly printed: string[]
  readonly complaints: string[]
  /** Delivers a SIGTERM. */
  readonly signal: () => void
}

/** A world without a terminal, in which it is always the same moment. */
export function fakeWorld(environment: Record<string, string>, input = ''): FakeWorld {
  const printed: string[] = []
  const complaints: string[] = []
  const listeners: ((signal: 'SIGTERM') => void)[] = []
  return {
    environment,
    pid: 4711,
    settingsFile: [],
    settingsFromFile: [],
    boot: undefined,
    hostName: 'sbc-1',
    networkAddresses: () => [],
    now: () => Date.UTC(2026, 10, 20),
    releaseMemory: () => undefined,
    steadyNow: () => Date.UTC(2026, 10, 20),
    random: () => 0.5,
    randomBytes: (size) => Buffer.alloc(size, 7),
    newUuid: () => '00000000-0000-4000-8000-000000000000',
    schedule: () => () => undefined,
    print: (line) => void printed.push(line),
    complain: (line) => void complaints.push(line),
    streams: { input: new PassThrough(), output: new PassThrough() },
    readInput: () => Promise.resolve(input),
    onStopSignal: (listener) => void listeners.push(listener),
    onReloadSignal: () => undefined,
    passedSockets: () => [],
    onCrash: () => undefined,
    printed,
    complaints,
    signal: () => {
      for (const listener of listeners) listener('SIGTERM')
    },
  }
}
