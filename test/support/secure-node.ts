/** A peer by TLS that Tollgate probes and calls. */
import { readFileSync } from 'node:fs'
import { onTestFinished } from 'vitest'
import type { Authority, Certificate } from './certificates.ts'
import { SipPeer, type PeerMessage } from './sip-peer.ts'

/** A place for a peer that has to be there before Tollgate: where it sends to is told later. */
export const placeFor = (protocol: 'udp' | 'tls') => ({
  protocol,
  address: '127.0.0.1',
  port: 0,
  advertisedHost: '127.0.0.1',
  advertisedPort: 0,
})

/** A UAS by TLS that answers OPTIONS; the rest is the test's. */
export async function secureNode({ certFile, keyFile }: Certificate, authority: Authority) {
  const place = placeFor('tls')
  const tls = {
    cert: readFileSync(certFile),
    key: readFileSync(keyFile),
    ca: readFileSync(authority.file),
  }
  const peer = await SipPeer.openPatient(place, { tls })
  let [probes, isOpen] = [0, true]
  onTestFinished(() => {
    isOpen = false
    peer.close()
  })
  const answerProbe = (request: PeerMessage): void => {
    probes += 1
    peer.reply(request, 200, { tag: 'probe' })
    answerProbes()
  }
  // A peer loses patience when nothing comes for a while, and starts anew.
  const onSilence = (): void => {
    if (isOpen) answerProbes()
  }
  const answerProbes = (): void => void peer.next('OPTIONS').then(answerProbe, onSilence)
  answerProbes()
  return { peer, place, probes: () => probes }
}

export type SecureNode = Awaited<ReturnType<typeof secureNode>>
