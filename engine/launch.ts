/**
 * `dist/main.js`: runs the program on this Node, restarts it on the Node that npm installed next to
 * it, or says in one line which Node it needs. An old Node must be able to read this file: it uses
 * nothing that Node 14 lacks, and it loads the program, whose native parts crash an old Node, last.
 */
import { spawn } from 'node:child_process'
import nodeModule, { createRequire } from 'node:module'
import { Socket } from 'node:net'
import { fileURLToPath } from 'node:url'
import packageJson from '../package.json' with { type: 'json' }

/** True: npm has installed it beside the packages of others. False: it runs in a clone. */
const isInstalled = import.meta.url.includes('/node_modules/')
const required = packageJson.engines.node.replace('>=', '')
const bundled = findBundledNode()

/**
 * V8 reads them when it starts (D133). Few scavenges meet a call that lives. With pretenuring, V8
 * puts objects that often outlive one into the old generation, where what they refer to survives
 * with them. Two threads scavenge slower than one.
 */
const heapFlags = [
  '--min-semi-space-size=16',
  '--max-semi-space-size=32',
  '--no-allocation-site-pretenuring',
  '--no-parallel-scavenge',
  '--heap-growing-percent=100',
]

/** Names the descriptor of the pipe that a launcher on an old Node holds the other end of. */
const LAUNCHER_PIPE = 'TOLLGATE_LAUNCHER_PIPE'

/** The C library keeps a heap of its own for each thread otherwise, and gives little of it back. */
const arenas = { MALLOC_ARENA_MAX: '2' }

if (isAtLeast(required, process.versions.node)) {
  endWithLauncher()
  // `execve` would close the sockets of the service manager: its unit gives the flags.
  if (isServer() && !isHeapChosen() && passedSockets() === 0) restartInPlace()
  keepCompiled()
  import(new URL('tollgate.js', import.meta.url).href).catch(reportMissing)
} else if (bundled === undefined) {
  const command = isInstalled ? 'npm install node@24' : 'npm ci'
  const advice = `install a newer Node, or run "${command}" in its folder, which brings one`
  process.stderr.write(
    `tollgate: needs Node ${required} or newer and runs on ${process.versions.node}: ${advice}\n`,
  )
  process.exitCode = 1
} else {
  restartOn(bundled)
}

/**
 * Packages that are not there, or were built for another Node. @throws {unknown} anything else, as
 * it is.
 */
function reportMissing(error: unknown): void {
  const { code = '', message = '' } = error as { readonly code?: string; readonly message?: string }
  if (!['ERR_MODULE_NOT_FOUND', 'MODULE_NOT_FOUND', 'ERR_DLOPEN_FAILED'].includes(code)) throw error
  const name = /'((?:@[\w-]+\/)?[\w-]+)[^']*'/.exec(message)?.[1]
  const what =
    code === 'ERR_DLOPEN_FAILED'
      ? 'a package does not fit this Node'
      : `the package ${name} is missing`
  const command = isInstalled ? 'npm install tollgate' : 'npm ci'
  process.stderr.write(`tollgate: ${what}: run "${command}" in the folder of Tollgate\n`)
  process.exitCode = 1
}

/**
 * Later starts need not parse the whole program (D133). Nothing is stored where this user may not
 * write, or this Node cannot.
 */
function keepCompiled(): void {
  nodeModule.enableCompileCache?.(fileURLToPath(new URL('.compiled', import.meta.url)))
}

/** The file of the npm package `node`, if it is installed and new enough. */
function findBundledNode(): string | undefined {
  const require = createRequire(import.meta.url)
  try {
    const { version } = require('node/package.json') as { version: string }
    return isAtLeast(required, version) ? require.resolve('node/bin/node') : undefined
  } catch {
    return undefined
  }
}

function isAtLeast(minimum: string, version: string): boolean {
  const [leastMajor = 0, leastMinor = 0] = minimum.split('.').map(Number)
  const [major = 0, minor = 0] = version.split('.').map(Number)
  return major > leastMajor || (major === leastMajor && minor >= leastMinor)
}

/** How many sockets the service manager has passed to this process: sd_listen_fds(3). */
function passedSockets(): number {
  const { LISTEN_PID, LISTEN_FDS } = process.env
  return LISTEN_PID === String(process.pid) ? Number(LISTEN_FDS ?? 0) : 0
}

/** Other commands end before it matters. */
function isServer(): boolean {
  return ['serve', 'demo', 'sip-server'].includes(process.argv[2] ?? '')
}

/**
 * Whether `heapFlags`, or the operator, has chosen the size of the heap. Node takes flags of V8
 * with `_` in place of `-`, too.
 */
function isHeapChosen(): boolean {
  const words = [...process.execArgv, process.env.NODE_OPTIONS ?? '']
  return words.some((word) => /[-_]semi[-_]space[-_]size/.test(word))
}

/**
 * The process keeps its id, its streams and what its environment says. Returns where the system
 * cannot do that.
 */
function restartInPlace(): void {
  const words = [process.execPath, ...heapFlags, ...process.execArgv, ...process.argv.slice(1)]
  const environment = { ...arenas, ...process.env }
  if (process.platform !== 'win32') process.execve?.(process.execPath, words, environment)
}

/**
 * The launcher's end of the pipe closes with it, however it ends. Its ports and its database are
 * free then, and answered calls go on at the next start, as after `kill -9` of this process.
 */
function endWithLauncher(): void {
  const descriptor = process.env[LAUNCHER_PIPE]
  // A program that this process starts has another pipe there, or none.
  delete process.env[LAUNCHER_PIPE]
  if (descriptor === undefined) return
  // The sockets were passed on, too.
  if (process.env.LISTEN_FDS !== undefined) process.env.LISTEN_PID = String(process.pid)
  const pipe = new Socket({ fd: Number(descriptor), readable: true, writable: false })
  pipe.on('error', () => undefined)
  pipe.on('close', () => process.kill(process.pid, 'SIGKILL'))
  pipe.resume()
  pipe.unref()
}

/**
 * Runs the same command line there, passes signals on, and ends as it ends; it ends with this
 * process, too.
 */
function restartOn(node: string): void {
  // `execve` would close the pipe, so the flags of `restartInPlace` are given at once.
  const flags = isServer() && !isHeapChosen() ? heapFlags : []
  const sockets = passedSockets()
  const environment: NodeJS.ProcessEnv = { ...arenas, ...process.env }
  if (sockets === 0) delete environment.LISTEN_FDS
  const child = spawn(node, [...flags, ...process.argv.slice(1)], {
    env: { ...environment, [LAUNCHER_PIPE]: String(3 + sockets) },
    stdio: [...Array.from({ length: 3 + sockets }, (_, descriptor) => descriptor), 'pipe'],
  })
  const pass = (signal: NodeJS.Signals) => child.kill(signal)
  for (const signal of ['SIGTERM', 'SIGHUP'] as const) process.on(signal, pass)
  // A terminal sends Ctrl-C to both processes; a second one would end calls at once.
  process.on('SIGINT', (signal) => {
    if (!process.stdin.isTTY) pass(signal)
  })
  child.on('error', (error) => {
    process.stderr.write(`tollgate: cannot start ${node}: ${error.message}\n`)
    process.exitCode = 1
  })
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 1
    if (signal === null) return
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}
