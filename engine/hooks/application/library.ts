/** The part of drachtio-srf that is extended here. Its own types lack most of it. */
import type { EventEmitter } from 'node:events'

export interface LibraryRequest {
  readonly method: string
  readonly uri: string
  readonly res: LibraryResponse
  readonly isNewInvite: boolean
  get(name: string): string | undefined
}

export interface LibraryResponse {
  readonly status: number | undefined
  readonly finalResponseSent: boolean
  send(
    status: number,
    reason?: string,
    options?: { readonly headers: Readonly<Record<string, string>> },
  ): void
}

export type Next = (error?: unknown) => void

type Middleware = (...parameters: unknown[]) => unknown

/** The middleware of one `ApplicationSrf`, with what sends its requests. */
interface LibraryApp {
  readonly stack: { handle: Middleware }[]
  handle(request: LibraryRequest, response: LibraryResponse, out?: Next): void
  _init(): LibraryAgent
}

export interface LibraryAgent {
  proxy(
    request: LibraryRequest,
    options: { readonly destination: readonly string[] },
    callback: (
      token: readonly string[],
      response?: string,
      meta?: { readonly address: string; readonly port: number },
    ) => void,
  ): void
  _makeRequest(parameters: { readonly options: LibraryOptions }): unknown
}

interface LibraryOptions {
  headers?: Record<string, string>
  readonly method?: string
  readonly stackDialogId?: string
  readonly stackTxnId?: string
}

/** One `ApplicationSrf`. */
export interface ApplicationSrf extends EventEmitter {
  readonly app: LibraryApp
  connect(options: ConnectOptions, callback?: (...parameters: unknown[]) => void): unknown
  disconnect(): void
  createB2BUA(
    request: LibraryRequest,
    response: LibraryResponse,
    uri: string,
    options: Readonly<Record<string, unknown>>,
  ): Promise<Bridge>
}

interface BridgeDialog extends EventEmitter {
  destroy(): unknown
}

export interface Bridge {
  readonly uas: BridgeDialog
  readonly uac: BridgeDialog
}

export interface ConnectOptions {
  readonly host: string
  readonly port: number
  readonly secret: string
}

export type SrfLibrary = new (tags?: unknown) => ApplicationSrf

/** Files without middleware never load it. */
export async function loadSrf(): Promise<SrfLibrary> {
  const { default: library }: { readonly default: unknown } = await import('drachtio-srf')
  if (!isLibrary(library)) throw new Error('drachtio-srf cannot be loaded')
  return library
}

const isLibrary = (library: unknown): library is SrfLibrary => typeof library === 'function'
