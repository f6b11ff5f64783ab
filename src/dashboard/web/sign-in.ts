import './sign-in.css'

const form = document.querySelector('form') as HTMLFormElement
const field = document.querySelector('#token') as HTMLInputElement
const error = document.querySelector('#error') as HTMLElement
/** This file is in `<mount>/assets/`. */
const here = import.meta.url
const base = new URL('..', here)

/** A link from a chat arrives without the strict cookie; a call of the same origin has it, and then the page is there. */
async function start(): Promise<void> {
  const token = new URLSearchParams(location.hash.replace(/^#\/?/, '')).get('token')
  // The token is wiped from the address before anything else: it must not stay in the history.
  if (token !== null) history.replaceState(null, '', `${location.pathname}#/`)
  const session = await fetch(new URL('api/session', base), { headers: { 'X-Millrace': '1' } })
  if (session.ok) return location.reload()
  if (token !== null) await signIn(token)
}

async function signIn(token: string): Promise<void> {
  const response = await fetch(new URL('api/login', base), {
    method: 'POST',
    headers: { 'X-Millrace': '1', 'Content-Type': 'application/json' },
    body: JSON.stringify({ token }),
  })
  if (response.ok) return location.reload()
  const wait = response.headers.get('Retry-After')
  error.textContent =
    response.status === 429
      ? `Too many tries. Try again in ${wait ?? '60'} s.`
      : 'This token is not right. The command prints it once at its start; start it again for a new one.'
}

form.addEventListener('submit', (event) => {
  event.preventDefault()
  void signIn(field.value.trim())
})
field.focus()
void start()
