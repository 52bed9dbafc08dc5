/**
 * Our entries in the route sets of calls that we forward. Each is sealed for its call, so that a
 * Route with our address does not make an open relay of this server: only a party that was given it
 * in a Record-Route can use it, and only for that call.
 *
 * A seal has no age. The route set of a dialog never changes (RFC 3261 §12.2), and we keep no state
 * that would show how long the call lasts: one that expires would cut the longest calls off from
 * their BYE. What it is good for afterwards is little: requests with a To tag and the Call-ID of a
 * call that an application has let its owner place, until this process ends and its key with it.
 */
import { flowTo, hopOf, ownUri } from '../hop-finder.ts'
import type { CoreOptions } from '../parts.ts'
import { bareUri } from '../../dialog/dialog.ts'
import { type Flow, isNamed, isReliable, type Listener } from '../../flow.ts'
import { parseUri } from '../../../../schema/sip/fields.ts'

/** The meaning of one of our Route values. */
export interface OwnRoute {
  /**
   * The connection on which the party behind this entry came; undefined: by its own address.
   * RFC 5626 §5.3: a phone behind a stream is reached on that stream and no other way.
   */
  readonly flow: Flow | undefined
}

export class OwnRoutes {
  readonly #options: Pick<CoreOptions, 'listeners' | 'seal' | 'sameSecret'>
  #areGiven = false

  constructor(options: Pick<CoreOptions, 'listeners' | 'seal' | 'sameSecret'>) {
    this.#options = options
  }

  /** Some request carries one: until then no Route needs to be looked at. */
  get areGiven(): boolean {
    return this.#areGiven
  }

  /** A loose route to `listener`; with a connection, back to it. */
  entry(listener: Listener, callId: string, connectionId: number, isSecure: boolean): string {
    this.#areGiven = true
    const user = connectionId === 0 ? '' : `c${connectionId}`
    const seal = this.#options.seal(`${connectionId} ${callId}`)
    return `<${ownUri(listener, user, isSecure)};lr;seal=${seal}>`
  }

  /** Undefined: not one of ours, or not of this call. */
  read(value: string, callId: string): OwnRoute | undefined {
    const uri = parseUri(bareUri(value))
    const seal = uri?.params.get('seal')
    if (uri === undefined || seal === undefined) return undefined
    const connectionId = /^c\d{1,15}$/.test(uri.user) ? Number(uri.user.slice(1)) : 0
    if (!this.#options.sameSecret(seal, this.#options.seal(`${connectionId} ${callId}`)))
      return undefined
    const protocol = hopOf(value)?.protocol
    const listener = this.#options
      .listeners()
      .find(
        (own) =>
          own.protocol === protocol && isNamed(own, uri.host) && own.advertisedPort === uri.port,
      )
    if (listener === undefined) return undefined
    const isStream = connectionId !== 0 && isReliable(listener.protocol)
    return { flow: isStream ? { ...flowTo(listener, '', 0), connectionId } : undefined }
  }
}
