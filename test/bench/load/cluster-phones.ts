/**
 * Two phones of a tenant, on the machine of the load: the first one calls the second one, at the nodes that it is told. This side tells the process of
 * the phones what to do, and that process is the same file.
 */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import type { Machine } from '../../support/cluster/network.ts'
import { SIP_PORT } from '../../support/cluster/cluster-node.ts'
import { DigestPhone } from '../../support/digest-phone.ts'
import { sdp } from '../../support/sip-peer.ts'

const domain = 'acme.example'
const caller = { domain, user: '101', password: 'secret-of-101' }
const callee = { domain, user: '102', password: 'secret-of-102' }

/** For the seed of the database. */
export const phoneResources = {
  tenants: [{ slug: 'acme', domains: [domain] }],
  extensions: [caller, callee].map(({ user, password }) => ({
    tenant: 'acme',
    extension: user,
    password,
    display_name: user,
  })),
}

interface Order {
  readonly kind: 'register' | 'call'
  /** Address of the node. */
  readonly at: string
}

export class ClusterPhones {
  readonly #child: ChildProcess

  private constructor(child: ChildProcess) {
    this.#child = child
  }

  static start(machine: Machine): ClusterPhones {
    const [execPath, ...words] = machine.command(process.execPath, ...process.execArgv)
    const options = { execPath, execArgv: words, detached: true }
    return new ClusterPhones(fork(import.meta.filename, [machine.address], options))
  }

  /** The called phone registers. Returns the status that it gets. */
  register(at: Machine): Promise<number> {
    return this.#ask({ kind: 'register', at: at.address })
  }

  /** The calling phone calls the other one, which answers. Returns the status that it gets. */
  call(at: Machine): Promise<number> {
    return this.#ask({ kind: 'call', at: at.address })
  }

  close(): void {
    this.#child.disconnect()
  }

  async #ask(order: Order): Promise<number> {
    const answer = once(this.#child, 'message')
    this.#child.send(order)
    const [status] = (await answer) as [number]
    return status
  }
}

/** At a node; the peer is on the machine of the load. */
const open = (at: string, own: string, account: typeof caller): Promise<DigestPhone> =>
  DigestPhone.open(
    { protocol: 'udp', address: at, port: SIP_PORT, advertisedHost: own, advertisedPort: SIP_PORT },
    account,
  )

async function call(at: string, own: string): Promise<number> {
  const phone = await open(at, own, caller)
  try {
    const leg = await phone.call(callee.user)
    const answer = await phone.answerTo(leg)
    phone.peer.learn(leg, answer)
    phone.peer.request('ACK', leg)
    if (answer.status !== 200) return answer.status
    phone.peer.request('BYE', leg)
    await phone.peer.next('200 BYE')
    return answer.status
  } finally {
    phone.close()
  }
}

/** Each call is answered, and hung up by the other side. */
async function answerCalls({ peer }: DigestPhone): Promise<void> {
  for (;;) {
    const request = await peer.next(({ method }) => method !== '' && method !== 'ACK')
    const body = request.method === 'INVITE' ? sdp('phone') : ''
    const headers = request.all('Record-Route').map((value) => `Record-Route: ${value}`)
    peer.reply(request, 200, { tag: 'phone', body, headers })
  }
}

function serve(own: string): void {
  let registered: DigestPhone | undefined
  const carryOut = async ({ kind, at }: Order): Promise<number> => {
    if (kind === 'call') return call(at, own)
    registered?.close()
    registered = await open(at, own, callee)
    const { status } = await registered.signOn()
    void answerCalls(registered).catch(() => undefined)
    return status
  }
  process.on('message', (order: Order) => {
    void carryOut(order)
      .catch(() => 0)
      .then((status) => process.send?.(status))
  })
  process.on('disconnect', () => process.exit())
}

if (process.send !== undefined && process.argv[1] === import.meta.filename)
  serve(process.argv[2] ?? '')
