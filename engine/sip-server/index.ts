/** The door of the embedded SIP server. */
export { createSipServer, type SipServer } from './server.ts'
export { isApplicationUri } from './clients/dialer.ts'
export type { NewRequest, RequestRoute, SipServerOptions } from './options.ts'
export type { InProcessClient, InProcessLink } from './clients/in-process.ts'
export type { Machine } from './machine.ts'
export type { Load } from './overload/overload.ts'
export type { Flow, Listener, Protocol } from './flow.ts'
export { CertificateError, ListenError } from './errors.ts'
