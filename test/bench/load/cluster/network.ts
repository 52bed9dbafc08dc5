/**
 * Machines of a network inside this one: network namespaces at one switch, whose links can be cut.
 * Needs root. They and all that runs in them are gone with the process that made them, however it
 * ends.
 */
import { spawn, spawnSync } from 'node:child_process'

export interface Machine {
  readonly name: string
  readonly address: string
  /** A program and its arguments, as this machine runs them. */
  readonly command: (...words: readonly string[]) => readonly [string, ...string[]]
}

/** A network of the range that RFC 2544 gives to measurements. */
const NETWORK = '198.18.0'

/** Begins the names of namespaces, beside the process that made them. */
const PREFIX = 'tollgate'

/** Why there can be no such network; undefined: there can. */
export function whyNoNetwork(): string | undefined {
  if (process.getuid?.() !== 0) return 'network namespaces need root'
  for (const program of ['ip', 'iptables', 'nsenter'])
    if (spawnSync(program, ['--version']).error !== undefined)
      return `${program} is not installed: apt-get install iproute2 iptables util-linux`
  const trial = `${PREFIX}-${process.pid}-trial`
  const made = spawnSync('ip', ['netns', 'add', trial], { encoding: 'utf8' })
  if (made.status !== 0) return `no network namespace can be made here: ${made.stderr.trim()}`
  spawnSync('ip', ['netns', 'del', trial])
  return undefined
}

export class Network {
  readonly machines: readonly Machine[]
  readonly #namespaces: readonly string[]
  readonly #switch: string

  private constructor(names: readonly string[]) {
    const prefix = `${PREFIX}-${process.pid}`
    this.#switch = `${prefix}-switch`
    this.machines = names.map((name, index) => ({
      name,
      address: `${NETWORK}.${10 + index}`,
      command: (...words) => ['nsenter', `--net=/run/netns/${prefix}-${name}`, '--', ...words],
    }))
    this.#namespaces = [this.#switch, ...names.map((name) => `${prefix}-${name}`)]
  }

  /** One machine for each name. @param folder is removed with the network. */
  static open(names: readonly string[], folder: string): Network {
    const network = new Network(names)
    network.#removeAtEnd(folder)
    network.#build()
    return network
  }

  machine(name: string): Machine {
    const found = this.machines.find((machine) => machine.name === name)
    if (found === undefined) throw new Error(`there is no machine ${name}`)
    return found
  }

  /** Packets between two machines are lost from now on. Returns what mends the link. */
  cut(one: Machine, other: Machine): () => void {
    const rules = [
      ['INPUT', '-s', other.address, '-j', 'DROP'],
      ['OUTPUT', '-d', other.address, '-j', 'DROP'],
    ]
    for (const rule of rules) run(one.command('iptables', '-w', '-A', ...rule))
    return () => {
      for (const rule of rules) run(one.command('iptables', '-w', '-D', ...rule))
    }
  }

  /** Ends all that runs on the machines, and removes them. */
  close(): void {
    spawnSync('sh', ['-c', removal, 'sh', '', ...this.#namespaces], { stdio: 'ignore' })
  }

  #build(): void {
    const inSwitch = ['ip', '-n', this.#switch] as const
    for (const namespace of this.#namespaces) run(['ip', 'netns', 'add', namespace])
    run([...inSwitch, 'link', 'add', 'bridge', 'type', 'bridge'])
    run([...inSwitch, 'link', 'set', 'bridge', 'up'])
    for (const [index, { address }] of this.machines.entries()) {
      const namespace = this.#namespaces[index + 1] ?? ''
      const port = `port${index}`
      const peer = ['peer', 'name', 'eth0', 'netns', namespace]
      run([...inSwitch, 'link', 'add', port, 'type', 'veth', ...peer])
      run([...inSwitch, 'link', 'set', port, 'master', 'bridge', 'up'])
      run(['ip', '-n', namespace, 'address', 'add', `${address}/24`, 'dev', 'eth0'])
      for (const device of ['lo', 'eth0']) run(['ip', '-n', namespace, 'link', 'set', device, 'up'])
    }
  }

  #removeAtEnd(folder: string): void {
    process.once('exit', () => this.close())
    for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const)
      process.once(signal, () => process.exit(130))
    // This process may be killed: another one waits for its end.
    const script = `while [ -d /proc/${process.pid} ]; do sleep 1; done; ${removal}`
    const words = ['-c', script, 'sh', folder, ...this.#namespaces]
    spawn('sh', words, { detached: true, stdio: 'ignore', cwd: '/' }).unref()
  }
}

/**
 * Arguments: a folder, or nothing, and namespaces. Programs get two seconds to end by themselves.
 */
const removal = `folder=$1; shift
  pids() { for name; do ip netns pids "$name" 2>/dev/null; done; }
  all=$(pids "$@")
  if [ -n "$all" ]; then kill -TERM $all; sleep 2; fi
  all=$(pids "$@")
  if [ -n "$all" ]; then kill -KILL $all; sleep 0.2; fi
  for name; do ip netns del "$name"; done
  if [ -n "$folder" ]; then rm -rf "$folder"; fi`

function run([program, ...words]: readonly [string, ...string[]]): void {
  const { status, stderr, error } = spawnSync(program, words, { encoding: 'utf8' })
  if (status !== 0)
    throw new Error(`${[program, ...words].join(' ')}: ${error?.message ?? stderr.trim()}`)
}
