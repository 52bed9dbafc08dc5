/** SIP by drachtio-servers elsewhere, which run by themselves. */
import type { SipService } from '../../../sip-server/index.ts'
import { DrachtioServers, type DrachtioServersDeps } from './drachtio-servers.ts'

const nothing = (): void => undefined

/** This process only connects to the servers: it has no listener, and nothing to hold or save. */
export const drachtioService = (deps: DrachtioServersDeps): SipService => ({
  createPort: () => new DrachtioServers(deps),
  listeners: [],
  load: { lagMs: 0, share: 1, refused: 0 },
  unansweredCount: 0,
  refusedConnections: 0,
  refusedCalls: 0,
  withLineFeeds: 0,
  captured: undefined,
  certificate: undefined,
  start: () => Promise.resolve(),
  release: nothing,
  dropNew: nothing,
  stopReading: nothing,
  answers: () => [],
  silence: nothing,
  stop: () => Promise.resolve(),
  reloadCertificates: nothing,
  stats: () => ({}),
})
