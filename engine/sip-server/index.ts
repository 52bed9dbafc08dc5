/** The door of the embedded SIP server. */
export { createSipServer, type SipServer, type SipService, type StartOptions } from './server.ts'
export type {
  DialogOfPeer,
  NewRequest,
  RequestRoute,
  SipServerOptions,
  TokenRequest,
  TokenVerdict,
} from './options.ts'
export type { InProcessClient, InProcessLink } from './clients/in-process.ts'
export { type Machine, thisMachine } from './machine.ts'
export type { Load } from './overload.ts'
export type { Flow, Listener } from './flow.ts'
export type { Protocol } from '../../schema/sip/message.ts'
export { Credentials } from './transport/credentials.ts'
export { CertificateError, ListenError, OptionError } from './errors.ts'
export { programHelp, runProgram, type ProgramWorld } from './program/program.ts'
export type { SipPort, SipPortUser } from './application.ts'
export { encodeFrame, FrameReader } from './wire/frame.ts'
