/** The started program with one node that does only what a test tells it to, but answers probes. */
import { onTestFinished } from 'vitest'
import { SipPeer } from './sip-peer.ts'
import { TollgateProcess } from './tollgate-process.ts'
import { patientInstances } from './waiting.ts'

export interface WithNode {
  readonly node: SipPeer
  readonly tollgate: TollgateProcess
}

/**
 * `seedFor` gets the node's port; `environment` is beside `patientInstances`. Everything is stopped
 * when the test is over.
 */
export async function startWithNode(
  seedFor: (ports: readonly number[]) => object,
  environment: Record<string, string> = {},
  { isActivated = false }: { readonly isActivated?: boolean } = {},
): Promise<WithNode> {
  // Its port goes into the seed, so that it is there before Tollgate, and learns the address later.
  const tollgateListens = { address: '127.0.0.1', advertisedHost: '127.0.0.1', advertisedPort: 9 }
  const listener = { protocol: 'udp' as const, port: 9, ...tollgateListens }
  const node = await SipPeer.openPatient(listener)
  onTestFinished(() => node.close())
  node.always('OPTIONS', 200, { tag: 'probed' })
  const settings = { ...patientInstances, ...environment }
  const tollgate = await TollgateProcess.start(seedFor([node.port]), settings, { isActivated })
  onTestFinished(() => tollgate.stop())
  listener.port = tollgate.sipPort
  return { node, tollgate }
}

export async function openPeer(tollgate: TollgateProcess): Promise<SipPeer> {
  const peer = await SipPeer.openPatient(tollgate.listener())
  onTestFinished(() => peer.close())
  return peer
}
