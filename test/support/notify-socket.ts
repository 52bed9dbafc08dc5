/**
 * The socket of systemd for a service: a Unix datagram socket. Node.js has none; perl, which is
 * always there in Debian, has.
 */
import { spawn } from 'node:child_process'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { setTimeout as pause } from 'node:timers/promises'
import { eventually } from './waiting.ts'

const script = `use Socket; $| = 1; unlink $ARGV[0]; my $socket;
  socket($socket, PF_UNIX, SOCK_DGRAM, 0) and bind($socket, pack_sockaddr_un($ARGV[0])) or die $!;
  print "listening\\n";
  while (defined recv($socket, my $message, 4096, 0)) { $message =~ s/\\n/ | /g; print "$message\\n" }`

export class NotifySocket {
  /** Messages in the order in which they came, the lines of each apart by ` | `. */
  readonly messages: string[] = []
  readonly path: string
  readonly #end: () => void

  private constructor(path: string) {
    this.path = path
    const child = spawn('perl', ['-e', script, path], { stdio: ['ignore', 'pipe', 'inherit'] })
    // systemd-notify asks with BARRIER=1 to be told when the message before has been read.
    createInterface({ input: child.stdout }).on('line', (line) => {
      if (line !== 'BARRIER=1') this.messages.push(line)
    })
    this.#end = () => void child.kill()
  }

  static async open(folder: string): Promise<NotifySocket> {
    const socket = new NotifySocket(join(folder, 'notify'))
    await socket.next(/^listening$/)
    return socket
  }

  /** The next message that the pattern matches; those before it are passed over. */
  next(pattern: RegExp): Promise<string> {
    return eventually(() => {
      const at = this.messages.findIndex((message) => pattern.test(message))
      const [found] = at === -1 ? [] : this.messages.splice(0, at + 1).slice(-1)
      if (found === undefined)
        throw new Error(`no ${String(pattern)} in ${JSON.stringify(this.messages)}`)
      return found
    })
  }

  /** Waits for this long without any message. */
  async quiet(ms: number): Promise<void> {
    for (let seen = -1; seen !== this.messages.length; await pause(ms)) seen = this.messages.length
  }

  close(): void {
    this.#end()
  }
}
