/**
 * Kamailio as a stateful proxy that stays in the dialog (Record-Route), on loopback and
 * unprivileged.
 */
import { spawn, type ChildProcess } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { processTree } from '../bench/load/process-cpu.ts'
import { freePort } from './free-port.ts'

/** Debian puts it where only root's PATH leads. */
const path = `${process.env['PATH'] ?? ''}:/usr/sbin`

/** As a rule it ends in a tenth of it. */
const PATIENCE_MS = 5_000

interface KamailioOptions {
  /**
   * Where it sends new requests: `sip:127.0.0.1:5060;transport=udp`. Absent: `configuration` says
   * it.
   */
  readonly nextHop?: string
  /** Instead of the usual one; it has `folder` for files of its own. */
  readonly configuration?: (port: number, folder: string) => string
  readonly port?: number
}

export class Kamailio {
  readonly port: number
  readonly log: string[] = []
  readonly #child: ChildProcess
  readonly #folder: string

  private constructor(child: ChildProcess, folder: string, port: number) {
    this.#child = child
    this.#folder = folder
    this.port = port
  }

  /** Resolves when it answers OPTIONS on its UDP port, and listens by TCP on the same one. */
  static async start(options: KamailioOptions): Promise<Kamailio> {
    const port = options.port ?? (await freePort())
    const folder = mkdtempSync(join(tmpdir(), 'kamailio-'))
    const file = join(folder, 'kamailio.cfg')
    const text = options.configuration?.(port, folder) ?? configuration(port, options.nextHop ?? '')
    writeFileSync(file, `${text}\n${readyRoute}`)
    const memory = ['-m', '32', '-M', '8']
    const child = spawn(
      'kamailio',
      ['-DD', '-E', '-f', file, '-Y', folder, '-w', folder, ...memory],
      {
        env: { PATH: path },
        stdio: ['ignore', 'ignore', 'pipe'],
      },
    )
    const kamailio = new Kamailio(child, folder, port)
    await kamailio.#ready()
    return kamailio
  }

  /** Ends it with all its processes. */
  async stop(): Promise<void> {
    if (this.#child.exitCode === null && this.#child.signalCode === null) {
      const closed = once(this.#child, 'exit')
      // It waits a minute for a process of its own that misses the signal.
      const tree = processTree(this.#child.pid ?? 0)
      const force = setTimeout(() => tree.forEach(forceStop), PATIENCE_MS)
      this.#child.kill('SIGTERM')
      await closed
      clearTimeout(force)
    }
    rmSync(this.#folder, { recursive: true, force: true })
  }

  async #ready(): Promise<void> {
    const { stderr } = this.#child
    if (stderr === null) throw new Error('kamailio has no output')
    await new Promise<void>((resolve, reject) => {
      createInterface({ input: stderr }).on('line', (line) => {
        this.log.push(line)
        if (line.includes('TOLLGATE-TEST ready')) resolve()
      })
      this.#child.once('error', reject)
      this.#child.once('exit', () => reject(new Error(`kamailio: ${this.log.join('\n')}`)))
    })
  }
}

function forceStop(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended meanwhile.
  }
}

const configuration = (port: number, nextHop: string): string => `#!KAMAILIO
debug=1
log_stderror=yes
# One process: of two, the one with our 487 may overtake the one with its own 200 to the CANCEL.
children=1
tcp_children=2
auto_aliases=no
dns=no
listen=udp:127.0.0.1:${port}
listen=tcp:127.0.0.1:${port}

loadmodule "tm.so"
loadmodule "sl.so"
loadmodule "rr.so"
loadmodule "maxfwd.so"
loadmodule "pv.so"
loadmodule "textops.so"
loadmodule "siputils.so"
loadmodule "xlog.so"

# The next hop has twenty seconds for its first answer: it may stand still for a moment.
modparam("tm", "fr_timer", 20000)
modparam("tm", "fr_inv_timer", 30000)

request_route {
  if (!mf_process_maxfwd_header("10")) { sl_send_reply("483", "Too Many Hops"); exit; }
  if (is_method("CANCEL")) { if (t_check_trans()) t_relay(); exit; }
  if (has_totag()) {
    if (loose_route()) { t_relay(); exit; }
    if (is_method("ACK")) { if (t_check_trans()) t_relay(); exit; }
    sl_send_reply("404", "Not Here");
    exit;
  }
  if (is_method("ACK")) { t_check_trans(); exit; }
  if (is_method("OPTIONS")) { sl_send_reply("200", "Kamailio"); exit; }
  t_check_trans();
  record_route();
  $du = "${nextHop}";
  t_relay();
}
`

const readyRoute = `
event_route[core:worker-one-init] {
  xlog("L_ALERT", "TOLLGATE-TEST ready\\n");
}
`
