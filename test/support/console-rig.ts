/** The started program with two nodes and two tenants, and the console of it in a browser. */
import { afterAll, beforeAll, onTestFinished } from 'vitest'
import type { Browser } from 'playwright-core'
import { openBrowser, openConsole, type ConsolePage } from './console-browser.ts'
import { openPeer } from './scripted-node.ts'
import { sdp, SipPeer, type Leg } from './sip-peer.ts'
import { TollgateProcess } from './tollgate-process.ts'
import { patientInstances } from './waiting.ts'

export const admin = { username: 'admin', password: 'correct horse battery' }
export const ofTenant = { username: 'tessa', password: 'correct tenant battery' }
/** The number of the customer that may pay. */
const paying = '12025550100'

export interface ConsoleRig {
  readonly tollgate: TollgateProcess
  readonly nodes: readonly SipPeer[]
  /** A page on which the administrator has signed in. */
  readonly console: ConsolePage
}

type Environment = Readonly<Record<string, string>>

/** One browser, and one rig, for the tests of a file. `environment`: more of the program. */
export function shareConsole(environment: Environment = {}) {
  const ends: (() => void | Promise<void>)[] = []
  let shared: { readonly browser: Browser; readonly rig: ConsoleRig } | undefined
  beforeAll(async () => {
    const browser = await openBrowser()
    ends.push(() => browser.close())
    shared = {
      browser,
      rig: await startConsoleRig(browser, environment, (work) => void ends.push(work)),
    }
  })
  afterAll(async () => {
    for (const end of ends.toReversed()) await end()
  })
  const started = () => {
    if (shared === undefined) throw new Error('the console has not started')
    return shared
  }
  /** A page of its own for a test, on which nobody has signed in. */
  const open = async (options: Parameters<typeof openConsole>[2] = {}): Promise<ConsolePage> => {
    const { browser, rig } = started()
    const opened = await openConsole(browser, rig.tollgate, options)
    onTestFinished(() => opened.page.context().close())
    return opened
  }
  return {
    rig: () => started().rig,
    open,
    signedIn: async (options: Parameters<typeof openConsole>[2] = {}): Promise<ConsolePage> => {
      // The session of the rig: an address may sign in a few times a minute only.
      const storageState = await started().rig.console.page.context().storageState()
      const opened = await open({ ...options, storageState })
      await opened.page.getByRole('button', { name: 'Account' }).waitFor()
      return opened
    },
  }
}

/** Signs the events of payments. */
export const paymentSecret = 'whsec_of_the_console_rig'

/** Everything ends by `atEnd`. */
async function startConsoleRig(
  browser: Browser,
  more: Environment,
  atEnd: (work: () => void | Promise<void>) => void,
): Promise<ConsoleRig> {
  // Their ports go into the seed, so they are there before Tollgate, and learn its address later.
  const places = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }
  const listener = { protocol: 'udp' as const, port: 9, ...places }
  const nodes = [await SipPeer.openPatient(listener), await SipPeer.openPatient(listener)]
  for (const node of nodes) node.always('OPTIONS', 200, { tag: 'probed' })
  atEnd(() => nodes.forEach((node) => node.close()))
  // A call that goes on at the end of a test must not be waited for.
  const environment = {
    ADMIN_PASSWORD: admin.password,
    DRAIN_SECONDS: '0',
    PAYMENT_WEBHOOK_SECRET: paymentSecret,
    NODE_TIMEOUT_MS: patientInstances.NODE_TIMEOUT_MS,
    ...more,
  }
  const tollgate = await TollgateProcess.start(seedFor(nodes.map(({ port }) => port)), environment)
  atEnd(() => tollgate.stop())
  listener.port = tollgate.sipPort
  const console = await openConsole(browser, tollgate)
  atEnd(() => console.page.context().close())
  await console.signIn(admin.username, admin.password)
  return { tollgate, nodes, console }
}

const seedFor = ([first, second]: readonly number[]) => ({
  tenants: [
    { slug: 'acme', domains: ['acme.example'] },
    { slug: 'other', domains: ['other.example'] },
  ],
  rate_plans: [{ name: 'retail', currency: 'USD' }],
  rates: [{ rate_plan: 'retail', prefix: '1', rate_per_minute: '0.60' }],
  customers: [
    { name: 'paying', rate_plan: 'retail', numbers: [paying], balance: '10.00' },
    { name: 'ours', tenant: 'acme', rate_plan: 'retail', numbers: ['12025550111'] },
    { name: 'theirs', tenant: 'other', rate_plan: 'retail', numbers: ['12025550122'] },
    { name: 'broke', rate_plan: 'retail', numbers: ['12025550133'] },
  ],
  dispatcher: [
    {
      // A test may stand still for a moment before it answers a probe.
      endpoint_name: 'pbx',
      set_id: 1,
      algorithm: 8,
      probe: { fail_threshold: 20 },
      nodes: [first, second].map((port, index) => ({
        host: '127.0.0.1',
        internal_port: port,
        priority: 10 + index,
      })),
    },
  ],
})

/** A call of a customer to the first node, answered; it goes on until it is hung up. */
export async function placeCall({ tollgate, nodes }: ConsoleRig): Promise<SipPeer> {
  const [node] = nodes
  if (node === undefined) throw new Error('there is no node')
  const { caller, leg } = await invite(tollgate, paying)
  node.reply(await node.next('INVITE'), 200, { tag: 'callee', body: sdp('callee') })
  caller.learn(leg, await caller.next('200 INVITE'))
  caller.request('ACK', leg)
  await node.next('ACK')
  return caller
}

/** The INVITE of a customer with this number. */
export async function invite(
  tollgate: TollgateProcess,
  number: string,
): Promise<{ readonly caller: SipPeer; readonly leg: Leg }> {
  const caller = await openPeer(tollgate)
  const plain = caller.leg(`sip:18005551212@127.0.0.1:${tollgate.sipPort}`)
  const leg = { ...plain, from: plain.from.replace('sip:peer@', `sip:${number}@`) }
  caller.request('INVITE', leg, { body: sdp('caller') })
  return { caller, leg }
}
