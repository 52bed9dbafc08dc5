/** A tool as REST runs it, with the same result. */
export const toolRequest = (name: string, given: unknown) => ({
  method: 'POST',
  target: `/api/v1/mcp/tools/${name}`,
  headers: { 'content-type': 'application/json' },
  body: Buffer.from(JSON.stringify(given)),
})
