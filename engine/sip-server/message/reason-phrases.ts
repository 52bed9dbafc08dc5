/** Default reason phrases: RFC 3261 §21 and the later responses of IANA's registry. */
import statuses from 'sip-status'

const phrases: Readonly<Record<number, string>> = {
  ...statuses,
  // As the RFCs and the registry write them.
  181: 'Call Is Being Forwarded',
  183: 'Session Progress',
  436: 'Bad Identity Info',
  437: 'Unsupported Credential',
  481: 'Call/Transaction Does Not Exist',
  504: 'Server Time-out',
  // Later than that package.
  425: 'Bad Alert Message',
  440: 'Max-Breadth Exceeded',
  469: 'Bad Info Package',
  555: 'Push Notification Service Not Supported',
  607: 'Unwanted',
  608: 'Rejected',
}

export const isKnownStatus = (status: number): boolean => phrases[status] !== undefined

/** Phrase for a status; an unregistered one reads as the x00 of its class (RFC 3261 §8.1.3.2). */
export const reasonPhrase = (status: number): string =>
  phrases[status] ?? phrases[Math.floor(status / 100) * 100] ?? 'Unknown'
