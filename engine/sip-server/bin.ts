#!/usr/bin/env node
/** `tollgate-sip-server`: the SIP server as a program of its own. Here the outside enters. */
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import packageJson from './package.json' with { type: 'json' }
import { CertificateError, ListenError, OptionError } from './errors.ts'
import {
  runProgram,
  type ProgramLogLevel,
  type ProgramLog,
  type ProgramWorld,
} from './program/program.ts'

const ranks: Readonly<Record<ProgramLogLevel, number>> = {
  debug: 0,
  info: 1,
  warn: 2,
  error: 3,
  fatal: 4,
  silent: 5,
}

// The reader of a pipe may close it before the process ends.
for (const stream of [process.stdout, process.stderr]) stream.on('error', () => undefined)

/** Bytes that may wait for a slow reader of the log; beyond, lines are lost. */
const maxWaitingBytes = 16 * 1024 * 1024

/** JSON lines on standard error. */
function createLog(level: ProgramLogLevel): ProgramLog {
  return {
    log: (of, message, fields) => {
      if (ranks[of] < ranks[level] || process.stderr.writableLength > maxWaitingBytes) return
      const line = { level: of, time: new Date().toISOString(), ...fields, msg: message }
      process.stderr.write(`${JSON.stringify(line)}\n`)
    },
    flush: () => new Promise((resolve) => void process.stderr.write('', () => resolve())),
  }
}

const world: ProgramWorld = {
  environment: process.env,
  version: packageJson.version,
  randomBytes,
  createLog,
  print: (line) => void process.stdout.write(`${line}\n`),
  readFile: (path) => {
    try {
      return readFileSync(path, 'utf8')
    } catch {
      return undefined
    }
  },
  onStopSignal: (listener) => {
    process.on('SIGTERM', listener)
    process.on('SIGINT', listener)
  },
  onReloadSignal: (listener) => {
    if (!process.stdin.isTTY) process.on('SIGHUP', listener)
  },
}

/**
 * V8 reads them when it starts: short scavenges, and a heap that stays near what lives. Calls cost
 * a fifth less.
 */
const heapFlags = ['--max-semi-space-size=16', '--heap-growing-percent=60']

/**
 * The process keeps its id, its streams and what its environment says. Returns where the system
 * cannot do that.
 */
function restartWithHeapFlags(): void {
  const words = [...process.execArgv, process.env['NODE_OPTIONS'] ?? '']
  const isChosen = words.some((word) => word.includes('-semi-space-size'))
  if (isChosen || process.platform === 'win32') return
  const all = [process.execPath, ...heapFlags, ...process.execArgv, ...process.argv.slice(1)]
  process.execve?.(process.execPath, all, process.env)
}

restartWithHeapFlags()
try {
  await runProgram(process.argv.slice(2), world)
} catch (error) {
  const isSetUpWrong =
    error instanceof OptionError ||
    error instanceof ListenError ||
    error instanceof CertificateError
  if (!isSetUpWrong) throw error
  process.stderr.write(`tollgate-sip-server: ${error.message}\n`)
  process.exitCode = 2
}
