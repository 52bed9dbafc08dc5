/** What the process before this one has left: its dialogs, and INVITEs that it has not answered. */
import type { SavedDialog, SavedInvite } from '../../sip-server/application.ts'
import type { Credentials } from '../signalling.ts'
import type { Dialog } from './dialog.ts'
import { ReceivedRequest } from './received-request.ts'
import type { ServerLink } from './server-link.ts'

/** A leg as plain JSON values: its confirmed dialog, or its received INVITE that is unanswered, with the offer. */
export interface SavedLeg {
  readonly dialog?: SavedDialog
  readonly invite?: SavedInvite
  readonly media?: string
  /** It is no dialog, but what a supervisor hears. */
  readonly listens?: true
  /** What a media gate keeps of it. */
  readonly relayed?: object
}

/** Undefined: the server cannot take it up. */
export function restoreDialog(
  link: ServerLink,
  saved: SavedDialog,
  credentials: Credentials | undefined,
): Dialog | undefined {
  if (link.saved?.restoreDialog(saved) !== true) return undefined
  const { role, callId, localTag, remoteTag } = saved
  const id = `${callId};from-tag=${role === 'uac' ? localTag : remoteTag}`
  return link.addDialog(id, { callId, localTag, remoteTag, media: '' }, credentials)
}

/** Undefined: the server cannot take it up. */
export function restoreInvite(
  link: ServerLink,
  saved: SavedInvite,
  body: string,
): ReceivedRequest | undefined {
  const event = link.saved?.restoreInvite(saved)
  if (event === undefined) return undefined
  const request = new ReceivedRequest(event, link, body)
  link.invited(request)
  return request
}
